#include "hearth/nn/weight_group.h"

#include <gtest/gtest.h>

#include "hearth/nn/init.h"

namespace hearth::nn {
namespace {

using Arrays = std::vector<mx::array>;

// Three layers of one input, and a norm before them.
class WeightGroups : public testing::Test {
 protected:
  static constexpr int kDim = 16;
  ParameterSet set_;
  std::vector<std::unique_ptr<Linear>> layers_;
  Pass pass_;

  void SetUp() override {
    mx::set_default_device(mx::Device::cpu);
    pass_.training = true;
    pass_.dtype = mx::float32;
    for (const int rows : {8, 24, 5}) {
      Weight& w = set_.add(
          {.name = "layer" + std::to_string(rows) + ".weight",
           .shape = {rows, kDim},
           .matrix = true,
           .trainable = true}
      );
      initialize(w, 3, 1);
      layers_.push_back(std::make_unique<Linear>(Affine{.weight = &w}));
    }
  }

  std::vector<const Linear*> first_two() const {
    return {layers_[0].get(), layers_[1].get()};
  }
  std::vector<WeightGroup> groups() const {
    return grouped(set_.all(), {trained_together(first_two())});
  }
  static mx::array weighed(const mx::array& y) {
    const auto by = mx::arange(0.0f, static_cast<float>(y.size()));
    return mx::sum(mx::multiply(mx::reshape(y, {-1}), mx::cos(by)));
  }
};

mx::array rows(int n, int dim, int seed) {
  return mx::random::normal(
      {n, dim}, mx::float32, mx::random::key(static_cast<std::uint64_t>(seed))
  );
}

void expect_near(const Arrays& a, const Arrays& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(mx::allclose(a[i], b[i], 1e-5, 1e-5).item<bool>()) << i;
  }
}

TEST_F(WeightGroups, AGroupStandsWhereItsFirstWeightDoes) {
  const auto all = set_.all();
  EXPECT_EQ(groups(), (std::vector<WeightGroup>{{all[0], all[1]}, {all[2]}}));
  set_.all()[1]->trainable = false;
  EXPECT_TRUE(trained_together(first_two()).empty());
}

TEST_F(WeightGroups, OneProductIsThoseOfAllSideBySide) {
  const ops::ScopedFace gpu(ops::Face::gpu);
  const auto x = rows(6, kDim, 1);
  const auto apart = project(x, first_two(), pass_);
  const GroupSubstitution inside(
      {trained_together(first_two())},
      {join_rows({set_.all()[0]->value(), set_.all()[1]->value()})}
  );
  const auto joined = grouped_product(x, first_two());
  ASSERT_TRUE(joined);
  expect_near({*joined}, {mx::concatenate(apart, -1)});
  EXPECT_FALSE(grouped_product(x, {layers_[0].get(), layers_[2].get()}));
  EXPECT_FALSE(grouped_product(x, {layers_[2].get()}));
}

TEST_F(WeightGroups, RowsComeApartAsTheyWereJoined) {
  const auto all = set_.all();
  const auto parts = split_rows(
      {all[0], all[1]}, join_rows({all[0]->value(), all[1]->value()})
  );
  expect_near(parts, {all[0]->value(), all[1]->value()});
}

// Gradients of stream, branch, norm and weights, with the norm's result kept
// and made again, by one product and by two.
TEST_F(WeightGroups, WhatIsMadeAgainChangesNoGradient) {
  const ops::ScopedFace gpu(ops::Face::gpu);
  Weight scale({.name = "norm.weight", .shape = {kDim}, .trainable = true});
  scale.set(mx::reshape(mx::add(mx::array(1.0f), rows(1, kDim, 4)), {kDim}));
  const Norm norm({.weight = &scale}, {});
  const auto gradients = [&](bool again, bool joined) {
    Pass pass = pass_;
    pass.cheap_again = again;
    const std::vector<Weight*> own{&scale};
    const auto f = [&](const Arrays& v) {
      const Substitution inside(own, {v[2]});
      const auto [h, y] = norm.add(v[0], v[1], pass);
      EXPECT_EQ(y.again.has_value(), again);
      const std::vector<WeightGroup> group{trained_together(first_two())};
      const GroupSubstitution weights(
          group, {mx::concatenate({v[3], v[4]}, 0)}
      );
      const auto product =
          joined ? *grouped_product(y, first_two())
                 : mx::concatenate(project(y, first_two(), pass), -1);
      return Arrays{mx::add(weighed(product), weighed(h))};
    };
    return mx::vjp(
               f,
               {rows(6, kDim, 1), rows(6, kDim, 2), scale.value(),
                layers_[0]->weight().value(), layers_[1]->weight().value()},
               {mx::array(1.0f)}
    )
        .second;
  };
  const auto want = gradients(false, false);
  expect_near(gradients(true, false), want);
  expect_near(gradients(false, true), want);
  expect_near(gradients(true, true), want);
}

}  // namespace
}  // namespace hearth::nn
