// Whole training steps: gradients of a batch and the optimiser's update. The
// share of peak is by the model's arithmetic, (6 parameters + 12 layers width
// length) a token, the embedding counted once; a frozen weight counts 4.
#include <fmt/format.h>

#include "hearth/bench/cases.h"
#include "hearth/bench/torch_peer.h"
#include "hearth/bench/train_step.h"
#include "hearth/hardware/process_peak.h"
#include "hearth/ops/op.h"

namespace hearth::bench {
namespace {

struct TrainCase {
  const char *name, *work;  // work: what the peer calls it
  StepShape shape;
  bool gpu_alone = false;  // minutes a step on a CPU
};

constexpr StepShape kB20{
    .dim = 384,
    .layers = 6,
    .heads = 12,
    .ffn = 1024,
    .vocab = 24576,
    .rows = 32,
    .length = 256
};
constexpr StepShape kG124{
    .dim = 768,
    .layers = 12,
    .heads = 12,
    .ffn = 2048,
    .vocab = 50304,
    .rows = 4,
    .length = 1024
};

// The same model on another batch.
constexpr StepShape of(
    StepShape shape,
    std::uint32_t rows,
    std::uint32_t length
) {
  shape.rows = rows;
  shape.length = length;
  return shape;
}

// The same update in less memory: row by row, the head alone kept packed.
constexpr StepShape lean(StepShape shape) {
  shape.micro_rows = 1;
  shape.packed_all = false;
  return shape;
}

const TrainCase kCases[] = {
    {"train b20 32x256", "b20", kB20},
    {"train b20 48x1024", "b20 48x1024", of(kB20, 48, 1024), true},
    {"train g124 4x1024", "g124", kG124},
    {"train g124 32x1024", "g124 32x1024", of(kG124, 32, 1024), true},
    {"train g124 4x1024 lean", "g124", lean(kG124)},
    {"train lora05 4x512",
     "lora05",
     {.dim = 896,
      .layers = 24,
      .heads = 14,
      .kv_heads = 2,
      .ffn = 4864,
      .vocab = 151936,
      .qkv_bias = true,
      .rows = 4,
      .length = 512,
      .lora_rank = 16}},
};

BenchCase case_of(const TrainCase& t, const CaseContext& context) {
  BenchCase c;
  c.name = t.name;
  c.work = t.shape.tokens();
  c.unit = "tokens/s";
  const bool cpu = ops::on_cpu({});
  // What doctor measured is the processor's.
  const double gops = cpu ? context.gops("bf16") : 0;
  c.peak = gops * 1e9 * t.shape.tokens() / step_flops(t.shape);
  c.isa = device_isa();
  c.repeats = 5;
  c.prepare = [shape = t.shape, seed = context.seed, cpu]() -> Timed {
    mlx::core::clear_cache();
    mlx::core::reset_peak_memory();
    hardware::reset_process_peak();
    auto step = std::make_shared<TrainStep>(shape, seed);
    Timed timed([step] { (*step)(); });
    timed.after = [step, cpu](Row& row) {
      const std::size_t bytes =
          cpu ? hardware::process_peak() : mlx::core::get_peak_memory();
      row.peak_mib = static_cast<double>(bytes) / (1 << 20);
      if (cpu) step->profile(row);
    };
    return timed;
  };
  return c;
}

}  // namespace

std::vector<BenchCase> train_cases(const CaseContext& context) {
  std::vector<BenchCase> cases;
  for (const TrainCase& t : kCases) {
    if (t.gpu_alone && ops::on_cpu({})) continue;
    const BenchCase own = case_of(t, context);
    if (!context.with_peers) {
      cases.push_back(own);
      continue;
    }
    for (const TorchVariant& v : torch_variants(context.peer_variants)) {
      BenchCase c = own;
      c.peer_name = "torch " + v.name;
      c.prepare_peer = [v, work = std::string(t.work)] {
        return torch_peer(work, v);
      };
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

}  // namespace hearth::bench
