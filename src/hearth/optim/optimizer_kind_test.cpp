// What the table says of each optimiser is what the made one does.
#include "hearth/optim/optimizer_kind.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/error.h"
#include "hearth/nn/parameter_set.h"
#include "hearth/ops/leaf.h"
#include "hearth/optim/optimizer.h"

namespace hearth::optim {
namespace {

// Charged to optimisers' state by now.
std::size_t held() {
  for (const ZoneUsage& zone : memory_usage().zones) {
    if (zone.name == "optimizer state") return zone.live;
  }
  return 0;
}

// Of every kind of shape that models have: a table, matrices large and small,
// one of a single column, vectors, a number, and stacked matrices.
class OptimizerKinds : public testing::TestWithParam<OptimConfig> {
 protected:
  void SetUp() override {
    mx::set_default_device(mx::Device::cpu);
    add("model.embed_tokens.weight", {130, 24});
    add("model.layers.0.self_attn.q_proj.weight", {70, 66});
    add("model.layers.0.mlp.up_proj.weight", {24, 30});
    add("model.layers.0.mlp.down_proj.weight", {300, 1});
    add("model.layers.0.input_layernorm.weight", {24});
    add("model.layers.0.mlp.gate_alpha", {1});
    add("model.experts.weight", {3, 20, 10});
    add("lm_head.weight", {130, 24});
  }
  void add(const char* name, const mx::Shape& shape) {
    nn::Weight& p =
        set_.add({.name = name, .shape = shape, .part = io::role_of(name)});
    p.set(ops::make_leaf(shape, mx::float32, MemoryZone::named("test")));
  }

  nn::ParameterSet set_;
};

TEST(OptimizerKindTable, WhatIsAdvisedInsteadKeepsLess) {
  const auto bytes = [](std::string_view name) {
    OptimConfig config;
    config.name = std::string(name);
    std::size_t sum = 0;
    for (const auto& a : optimizer_kind(name).state(config, {512, 512})) {
      sum += a.bytes();
    }
    return sum;
  };
  for (const OptimizerKind& kind : optimizer_kinds()) {
    if (kind.smaller.empty()) continue;
    EXPECT_LT(bytes(kind.smaller), bytes(kind.name)) << kind.name;
  }
}

TEST_P(OptimizerKinds, DescribeTheStateThatTheOptimizerHolds) {
  if (!ops::on_cpu({})) GTEST_SKIP() << "a GPU's memory is not charged";
  const std::size_t before = held();
  const auto optimizer = Optimizer::make(GetParam(), set_.all());
  const auto state = optimizer->state();
  std::size_t at = 1;  // behind the number of steps
  std::size_t numbers = 0, charged = 0;
  for (const nn::Weight* p : set_.all()) {
    const OptimizerKind& kind = kind_of(GetParam(), *p);
    for (const ops::StateArray& a : kind.state(GetParam(), p->shape)) {
      ASSERT_LT(at, state.size());
      EXPECT_EQ(state[at].name, p->name + "/" + a.name);
      EXPECT_EQ(state[at].array.shape(), a.shape) << state[at].name;
      EXPECT_EQ(state[at].array.dtype(), a.dtype) << state[at].name;
      EXPECT_EQ(state[at].array.nbytes(), a.bytes()) << state[at].name;
      numbers += a.bytes();
      charged += AlignedBuffer::taken(a.bytes() + AlignedBuffer::kAlignment);
      ++at;
    }
  }
  EXPECT_EQ(at, state.size());
  EXPECT_EQ(optimizer->state_bytes(), numbers);
  EXPECT_EQ(held() - before, charged);
}

// A step that changed what is kept would be seen here, too.
TEST_P(OptimizerKinds, HoldTheSameAfterAStep) {
  if (!ops::on_cpu({})) GTEST_SKIP() << "a GPU's memory is not charged";
  const auto optimizer = Optimizer::make(GetParam(), set_.all());
  const std::size_t numbers = optimizer->state_bytes(), charged = held();
  ops::Arrays gradients;
  for (const nn::Weight* p : set_.all()) {
    gradients.push_back(mx::full(p->shape, 0.5f));
  }
  mx::eval(gradients);
  optimizer->step(gradients, 1, 0.01);
  EXPECT_EQ(optimizer->state_bytes(), numbers);
  EXPECT_EQ(held(), charged);
}

// Each as it is and, where an option adds state, with that option.
std::vector<OptimConfig> every_optimizer() {
  std::vector<OptimConfig> all;
  for (const std::string& name : optimizer_names()) {
    all.push_back({.name = name});
  }
  OptimConfig momentum{.name = "adafactor"};
  momentum.adafactor.momentum = 0.5;
  all.push_back(momentum);
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Every,
    OptimizerKinds,
    testing::ValuesIn(every_optimizer()),
    [](const auto& made) {
      return made.param.name +
             (made.param.adafactor.momentum != 0 ? "_momentum" : "");
    }
);

TEST(OptimizerKind, SaysWhichRuleUpdatesAParameter) {
  const auto rule = [](const char* optimizer, const nn::WeightSpec& p) {
    return std::string(kind_of({.name = optimizer}, p).name);
  };
  const nn::WeightSpec matrix{.name = "a.q_proj.weight", .shape = {64, 64}};
  const nn::WeightSpec vector{.name = "a.norm.weight", .shape = {4096}};
  EXPECT_EQ(rule("lion", vector), "lion");
  EXPECT_EQ(rule("muon", matrix), "muon");
  EXPECT_EQ(rule("muon", vector), "adamw");
  EXPECT_EQ(rule("adamw8bit", vector), "adamw8bit");
  EXPECT_EQ(rule("adamw8bit", {.name = "b", .shape = {4095}}), "adamw");
  EXPECT_THROW(optimizer_kind("sgd"), UsageError);
}

// muon.exclude is a list of names, since the user may change it. What it says
// by default is every table that a model has, and no other matrix.
TEST(OptimizerKind, MuonLeavesTheTablesOfEveryFamily) {
  const OptimConfig muon{.name = "muon"};
  for (const io::RoleName& row : io::role_names()) {
    const bool table = row.role == io::Role::embedding ||
                       row.role == io::Role::positions ||
                       row.role == io::Role::head;
    const nn::WeightSpec p{
        .name = std::string(row.module) + ".weight", .shape = {8, 8}
    };
    EXPECT_EQ(kind_of(muon, p).name, table ? "adamw" : "muon") << p.name;
  }
}

}  // namespace
}  // namespace hearth::optim
