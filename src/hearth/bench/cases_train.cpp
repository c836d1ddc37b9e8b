// Whole training steps: gradients of a batch and the optimiser's update. The
// share of peak is by the model's arithmetic, (6 parameters + 12 layers width
// length) a token, the embedding counted once.
#include <memory>

#include "hearth/bench/cases.h"
#include "hearth/models/load.h"
#include "hearth/nn/init.h"
#include "hearth/optim/clip.h"
#include "hearth/optim/optimizer.h"
#include "hearth/train/accumulator.h"
#include "hearth/train/planner.h"

namespace hearth::bench {
namespace {

struct TrainCase {
  const char* name;
  int dim, layers, heads, ffn, vocab;
  std::uint32_t rows, length;
};

constexpr TrainCase kCases[] = {
    {"train b20 32x256", 384, 6, 12, 1024, 24576, 32, 256},
    {"train g124 4x1024", 768, 12, 12, 2048, 50304, 4, 1024},
};

models::DecoderConfig config_of(const TrainCase& t) {
  models::DecoderConfig c;
  c.family = "llama";
  c.vocab = t.vocab, c.dim = t.dim, c.layers = t.layers;
  c.heads = c.kv_heads = t.heads, c.head_dim = t.dim / t.heads;
  c.ffn = t.ffn, c.max_length = static_cast<int>(t.length);
  c.tie = true;
  c.windows.assign(static_cast<std::size_t>(t.layers), 0);
  c.rope = ops::RopeConfig{.dims = c.head_dim};
  return c;
}

data::Batch random_batch(const TrainCase& t, std::uint64_t seed) {
  data::Batch b;
  b.rows = t.rows, b.length = t.length;
  RandomStream random{RandomKey(seed)};
  const auto draw = [&] {
    return static_cast<std::int32_t>(
        random.below(static_cast<std::uint64_t>(t.vocab))
    );
  };
  for (std::uint32_t i = 0; i < t.rows * t.length; ++i) {
    b.ids.push_back(draw());
    b.targets.push_back(draw());
    b.segments.push_back(1);
    b.positions.push_back(static_cast<std::int32_t>(i % t.length));
    b.weights.push_back(1);
  }
  return b;
}

// A model that trains on the same random tokens again and again.
class Step {
 public:
  Step(const TrainCase& t, std::uint64_t seed)
      : model_(config_of(t)), batch_(random_batch(t, seed)), rows_(t.rows) {
    for (nn::Parameter* p : model_.parameters().all()) {
      nn::initialize(*p, seed, t.layers);
      p->trainable = true;
    }
    models::prepare(model_, mlx::core::bfloat16, models::Use::training);
    optim::OptimConfig adamw;
    optimizer_ = optim::Optimizer::make(adamw, model_.parameters().trainable());
  }

  void operator()() {
    const auto g =
        train::accumulate(model_, train::LanguageModel(), batch_, rows_, {});
    const double norm = optim::global_norm(g.arrays) / g.weight_sum;
    const double scale = optim::clip_factor(norm, 1) / g.weight_sum;
    optimizer_->step(g.arrays, static_cast<float>(scale), 1e-4);
  }

 private:
  models::Decoder model_;
  data::Batch batch_;
  std::uint32_t rows_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

}  // namespace

std::vector<BenchCase> train_cases(const CaseContext& context) {
  std::vector<BenchCase> cases;
  for (const TrainCase& t : kCases) {
    BenchCase c;
    c.name = t.name;
    c.work = double(t.rows) * t.length;
    c.unit = "tokens/s";
    const auto config = config_of(t);
    c.peak = context.gops("bf16") * 1e9 /
             train::training_flops(
                 config, train::count_parameters(config, {}), false, t.length
             );
    c.isa = kernels::best().isa;
    c.repeats = 5;
    c.prepare = [t, seed = context.seed]() -> Timed {
      auto step = std::make_shared<Step>(t, seed);
      return {[step] { (*step)(); }, nullptr};
    };
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace hearth::bench
