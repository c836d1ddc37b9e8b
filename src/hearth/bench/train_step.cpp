#include "hearth/bench/train_step.h"

#include <algorithm>
#include <functional>

#include "hearth/base/clock.h"
#include "hearth/models/load.h"
#include "hearth/nn/init.h"
#include "hearth/ops/leaf.h"
#include "hearth/profile/zone.h"
#include "hearth/train/loop/session.h"
#include "hearth/train/plan/planner.h"

namespace hearth::bench {
namespace {

namespace mx = mlx::core;

data::Batch random_batch(const StepShape& t, std::uint64_t seed) {
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

nn::LoraConfig lora_of(const StepShape& shape) {
  nn::LoraConfig c;
  c.rank = shape.lora_rank;
  c.targets = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
               "gate_proj", "up_proj", "down_proj"};
  return c;
}

void start_all(
    models::Decoder& model,
    mx::Dtype compute,
    std::uint64_t seed,
    models::PackedCopies copies
) {
  for (nn::Weight* p : model.parameters().all()) {
    nn::initialize(*p, seed, model.config().layers);
    p->trainable = true;
  }
  models::prepare(model, compute, models::Use::training, copies);
}

// The base as a loaded one is held: matrices in the products' type and packed,
// one at a time.
void start_adapters(
    models::Decoder& model,
    mx::Dtype compute,
    std::uint64_t seed,
    const nn::LoraConfig& lora
) {
  const int layers = model.config().layers;
  const models::WeightPlan plan(models::Use::frozen_base, compute);
  for (nn::Weight* p : model.parameters().all()) {
    nn::initialize(*p, seed, layers);
    const models::WeightForms held = plan.forms(*p);
    const mx::Dtype type = held.value ? *held.value : *held.packed;
    if (type != p->value().dtype()) {
      auto narrow = mx::astype(p->value(), type);
      narrow.eval();
      p->set(std::move(narrow));
    }
    plan.settle(*p);
  }
  std::uint64_t index = 0;
  for (nn::Linear* linear : model.linears()) {
    linear->attach(model.parameters(), lora, index++);
  }
  for (nn::Weight* p : model.parameters().trainable()) {
    nn::initialize(*p, seed, layers);
    plan.settle(*p);
  }
}

}  // namespace

models::DecoderConfig config_of(const StepShape& t) {
  models::DecoderConfig c;
  c.family = t.qkv_bias ? "qwen2" : "llama";
  c.vocab = t.vocab, c.dim = t.dim, c.layers = t.layers;
  c.heads = t.heads, c.kv_heads = t.kv_heads > 0 ? t.kv_heads : t.heads;
  c.head_dim = t.dim / t.heads;
  c.ffn = t.ffn, c.max_length = static_cast<int>(t.length);
  c.tie = true;
  c.qkv_bias = t.qkv_bias;
  c.windows.assign(static_cast<std::size_t>(t.layers), 0);
  c.rope = ops::RopeConfig{.dims = c.head_dim};
  return c;
}

double step_flops(const StepShape& t) {
  const auto config = config_of(t);
  std::optional<nn::LoraConfig> lora;
  if (t.lora_rank > 0) lora = lora_of(t);
  const auto count = train::count_parameters(config, lora);
  return t.tokens() *
         train::training_flops(config, count, t.lora_rank > 0, t.length);
}

TrainStep::TrainStep(const StepShape& shape, std::uint64_t seed)
    : model_(config_of(shape)),
      batch_(random_batch(shape, seed)),
      rows_(shape.micro_rows > 0 ? shape.micro_rows : shape.rows) {
  const mx::Dtype compute = shape.bf16 ? mx::bfloat16 : mx::float32;
  if (shape.lora_rank > 0) {
    start_adapters(model_, compute, seed, lora_of(shape));
  } else {
    start_all(
        model_, compute, seed,
        shape.packed_all ? models::PackedCopies::all
                         : models::PackedCopies::head
    );
  }
  optimizer_ = optim::Optimizer::make({}, model_.parameters().trainable());
  step_ =
      train::make_step({model_, objective_, *optimizer_}, {.compute = compute});
}

TrainStep::~TrainStep() {
  while (under_way_ > 0) take();
}

// As the loop does: a device is sent the next step before the last is taken.
void TrainStep::operator()() {
  step_->send(batch_, {.rows = rows_, .lr = 1e-4});
  if (++under_way_ == step_->most_under_way()) take();
}

void TrainStep::take() {
  --under_way_;
  rows_ = step_->take().rows;
}

void TrainStep::profile(Row& row) {
  profile::start_zones();
  const double start = seconds_now();
  (*this)();
  const double wall = seconds_now() - start;
  profile::stop_zones();
  double inside = 0;
  row.ops.clear();
  for (const auto& zone : profile::zone_totals()) {
    inside += zone.self_seconds;
    row.ops.push_back({zone.name, zone.count, zone.self_seconds * 1e3});
  }
  std::ranges::sort(row.ops, std::ranges::greater(), &OpTime::ms);
  row.overhead = 1 - inside / wall;
}

}  // namespace hearth::bench
