// What is planned of a run's weights is what the model and the optimiser that
// are made for it hold.
#include "hearth/train/plan/weight_memory.h"

#include <gtest/gtest.h>

#include "hearth/models/decoder.h"
#include "hearth/nn/linear.h"
#include "hearth/ops/leaf.h"
#include "hearth/optim/optimizer.h"
#include "hearth/optim/optimizer_kind.h"
#include "hearth/train/plan/planner.h"

namespace hearth::train {
namespace {

// Charged to optimisers' state by now.
std::size_t state_held() {
  for (const ZoneUsage& zone : memory_usage().zones) {
    if (zone.name == "optimizer state") return zone.live;
  }
  return 0;
}

class WeightMemory : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    mx::set_default_device(mx::Device::cpu);
    Recipe r;
    r.model.dim = 64, r.model.layers = 2, r.model.heads = 2;
    r.model.ffn = 128, r.model.vocab = 300;
    config_ = planned_model(r).config;
    if (GetParam()) {
      lora_.emplace();
      lora_->rank = 4, lora_->dora = true, lora_->targets = {"*_proj"};
    }
    planned_ = planned_weights(models::Blueprint(config_), lora_, {}, true);
  }

  // With the weights that train, as zeros.
  models::Decoder model() const {
    models::Decoder model(config_);
    for (nn::Weight* p : model.parameters().all()) p->trainable = !lora_;
    std::uint64_t index = 0;
    for (nn::Linear* linear : model.linears()) {
      if (lora_) linear->attach(model.parameters(), *lora_, index++);
    }
    for (nn::Weight* p : model.parameters().trainable()) {
      p->set(ops::make_leaf(p->shape, mx::float32, MemoryZone::named("test")));
    }
    return model;
  }

  models::DecoderConfig config_;
  std::optional<nn::LoraConfig> lora_;
  std::vector<PlannedWeight> planned_;
};

TEST_P(WeightMemory, ListsTheWeightsThatTheModelHas) {
  const models::Decoder made = model();
  EXPECT_EQ(planned_.size(), made.parameters().all().size());
  for (const PlannedWeight& w : planned_) {
    const nn::Weight& p = made.parameters().at(w.spec.name);
    EXPECT_EQ(p.shape, w.spec.shape) << p.name;
    EXPECT_EQ(p.trainable, w.spec.trainable) << p.name;
    EXPECT_EQ(p.part, w.spec.part) << p.name;
    EXPECT_EQ(p.matrix, w.spec.matrix) << p.name;
  }
}

TEST_P(WeightMemory, PlansTheStateThatEveryOptimizerHolds) {
  if (!ops::on_cpu({})) GTEST_SKIP() << "a GPU's memory is not charged";
  const models::Decoder made = model();
  for (const std::string& name : optim::optimizer_names()) {
    const optim::OptimConfig config{.name = name};
    std::size_t planned = 0;
    for (const PlannedWeight& w : planned_) {
      if (w.spec.trainable) planned += state_bytes(config, w);
    }
    const std::size_t before = state_held();
    const auto optimizer =
        optim::Optimizer::make(config, made.parameters().trainable());
    EXPECT_EQ(state_held() - before, planned) << name;
  }
}

// What one update has worked in serves the next of that shape.
TEST_P(WeightMemory, CountsTheWorkspaceOfEachShapeOnce) {
  EXPECT_EQ(update_workspace({.name = "adamw"}, planned_), 0u);
  const optim::OptimConfig muon{.name = "muon"};
  const std::size_t all = update_workspace(muon, planned_);
  EXPECT_GT(all, 0u);
  auto twice = planned_;
  twice.insert(twice.end(), planned_.begin(), planned_.end());
  EXPECT_EQ(update_workspace(muon, twice), all);
  // Without adapters: those of attention and of the MLP, up and down.
  const auto of = [](std::size_t n, std::size_t k) {
    return 20 * (n * k + std::min(n, k) * std::min(n, k));
  };
  if (lora_) return;
  EXPECT_EQ(all, of(64, 64) + of(128, 64) + of(64, 128));
}

INSTANTIATE_TEST_SUITE_P(
    Of,
    WeightMemory,
    testing::Bool(),
    [](const auto& made) { return made.param ? "Adapters" : "Everything"; }
);

}  // namespace
}  // namespace hearth::train
