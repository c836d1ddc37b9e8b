// Whole training steps: gradients of a batch and the optimiser's update. The
// share of peak is by the model's arithmetic, (6 parameters + 12 layers width
// length) a token, the embedding counted once; a frozen weight counts 4.
#include <fmt/format.h>

#include "hearth/bench/cases.h"
#include "hearth/bench/torch_peer.h"
#include "hearth/bench/train_step.h"
#include "hearth/hardware/process_peak.h"
#include "hearth/kernels/table.h"

namespace hearth::bench {
namespace {

struct TrainCase {
  const char *name, *work;  // work: what the peer calls it
  StepShape shape;
};

const TrainCase kCases[] = {
    {"train b20 32x256",
     "b20",
     {.dim = 384,
      .layers = 6,
      .heads = 12,
      .ffn = 1024,
      .vocab = 24576,
      .rows = 32,
      .length = 256}},
    {"train g124 4x1024",
     "g124",
     {.dim = 768,
      .layers = 12,
      .heads = 12,
      .ffn = 2048,
      .vocab = 50304,
      .rows = 4,
      .length = 1024}},
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
  c.peak = context.gops("bf16") * 1e9 * t.shape.tokens() / step_flops(t.shape);
  c.isa = kernels::best().isa;
  c.repeats = 5;
  c.prepare = [shape = t.shape, seed = context.seed]() -> Timed {
    mlx::core::clear_cache();
    hardware::reset_process_peak();
    auto step = std::make_shared<TrainStep>(shape, seed);
    Timed timed([step] { (*step)(); });
    timed.after = [step](Row& row) {
      row.peak_mib = static_cast<double>(hardware::process_peak()) / (1 << 20);
      row.overhead = step->overhead();
    };
    return timed;
  };
  return c;
}

}  // namespace

std::vector<BenchCase> train_cases(const CaseContext& context) {
  std::vector<BenchCase> cases;
  for (const TrainCase& t : kCases) {
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
