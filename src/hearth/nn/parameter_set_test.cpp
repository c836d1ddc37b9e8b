#include "hearth/nn/parameter_set.h"

#include <cmath>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/nn/init.h"
#include "hearth/ops/linear/op.h"

namespace hearth::nn {
namespace {

TEST(Matches, AWordIsAWholeComponent) {
  const std::string name = "model.layers.10.self_attn.q_proj.weight";
  EXPECT_TRUE(matches("q_proj", name));
  EXPECT_TRUE(matches("self_attn.q_proj", name));
  EXPECT_TRUE(matches("model", name));
  EXPECT_TRUE(matches(name, name));
  EXPECT_FALSE(matches("proj", name));
  EXPECT_FALSE(matches("layers.1", name));
  EXPECT_FALSE(matches("q_proj.weigh", name));
}

TEST(Matches, AStarStandsForAnyCharacters) {
  const std::string name = "model.layers.10.self_attn.q_proj.weight";
  EXPECT_TRUE(matches("*", name));
  EXPECT_TRUE(matches("*q_proj*", name));
  EXPECT_TRUE(matches("model.layers.1*.q_proj.weight", name));
  EXPECT_TRUE(matches("model*weight", name));
  EXPECT_FALSE(matches("*q_proj", name));
  EXPECT_FALSE(matches("layers*", name));
  EXPECT_FALSE(matches("model*weights", name));
}

TEST(ParameterSet, GroupsByPatternAndCounts) {
  ParameterSet set;
  set.add({.name = "a.q_proj.weight", .shape = {4, 3}, .trainable = true});
  set.add({.name = "a.k_proj.weight", .shape = {2, 3}});
  EXPECT_EQ(set.matching("q_proj").size(), 1u);
  EXPECT_EQ(set.matching("a").size(), 2u);
  EXPECT_EQ(set.count(), 18u);
  EXPECT_EQ(set.count(true), 12u);
  EXPECT_EQ(set.find("a.v_proj.weight"), nullptr);
  EXPECT_THROW(set.add({.name = "a.q_proj.weight"}), Error);
}

TEST(Substitution, PutsBackWhatWasThereEvenAfterAnError) {
  ParameterSet set;
  Weight& p = set.add({.name = "w", .shape = {2}});
  p.set(mx::array({1.0f, 2.0f}));
  const auto before = p.value().id();
  const std::vector<Weight*> all{&p};
  try {
    const Substitution inside(all, {mx::array({5.0f, 6.0f})});
    EXPECT_EQ(mx::sum(p.value()).item<float>(), 11);
    throw Error("from inside");
  } catch (const Error&) {
  }
  EXPECT_EQ(p.value().id(), before);
}

Weight matrix(int rows, int cols) {
  Weight p({.name = "w", .shape = {rows, cols}, .matrix = true});
  initialize(p, 3, 1);
  return p;
}

// Whatever a refreshed companion holds, one packed from scratch holds too.
TEST(Pack, ARefreshedCompanionEqualsAFreshOne) {
  for (const auto dtype : {mx::float32, mx::bfloat16}) {
    Weight p = matrix(70, 45);
    pack(p, dtype, ops::PackedOrders::both);
    for (std::size_t i = 0; i < p.value().size(); ++i) {
      p.value().data<float>()[i] += 1.0f + 0.01f * static_cast<float>(i % 7);
    }
    pack(p, dtype, ops::PackedOrders::both);
    Weight fresh({.name = "w", .shape = p.shape, .matrix = true});
    fresh.set(p.value());
    pack(fresh, dtype, ops::PackedOrders::both);
    const auto x = mx::astype(mx::ones({3, 45}), dtype);
    const auto a = ops::linear(x, p.value(), {}, p.packed());
    const auto b = ops::linear(x, p.value(), {}, fresh.packed());
    EXPECT_TRUE(mx::array_equal(a, b).item<bool>());
    auto last = mx::slice(mx::astype(a, mx::float32), {2, 69}, {3, 70});
    EXPECT_GT(last.item<float>(), 44) << "the new numbers are in it";
  }
}

TEST(Initialize, IsAFunctionOfSeedAndNameAlone) {
  const auto values = [](const std::string& name, std::uint64_t seed) {
    Weight p({.name = name, .shape = {64, 64}});
    initialize(p, seed, 4);
    return std::vector<float>(
        p.value().data<float>(), p.value().data<float>() + p.value().size()
    );
  };
  EXPECT_EQ(values("a", 1), values("a", 1));
  EXPECT_NE(values("a", 1), values("b", 1));
  EXPECT_NE(values("a", 1), values("a", 2));
  double square = 0;
  for (const float v : values("a", 1)) square += double{v} * v;
  EXPECT_NEAR(std::sqrt(square / 4096), 0.02, 0.001);
}

}  // namespace
}  // namespace hearth::nn
