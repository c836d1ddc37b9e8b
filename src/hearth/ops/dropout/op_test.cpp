#include "hearth/ops/dropout/op.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::ops {
namespace {

mx::array ones(int rows, int dim) {
  return mx::ones({rows, dim}, mx::float32);
}
mx::array keys(std::vector<std::uint64_t> values) {
  return mx::array(values.data(), {static_cast<int>(values.size())});
}

TEST(Dropout, DropsTheShareItIsToldAndKeepsTheMean) {
  const auto y = dropout(ones(1, 100000), keys({1}), 0, 0.1f);
  auto mean = mx::mean(y);
  EXPECT_NEAR(mean.item<float>(), 1, 0.01);
  auto zeros = mx::mean(mx::astype(mx::equal(y, mx::array(0.f)), mx::float32));
  EXPECT_NEAR(zeros.item<float>(), 0.1, 0.005);
}

TEST(Dropout, NoiseBelongsToTheKeyNotToTheRow) {
  const auto a = dropout(ones(2, 64), keys({5, 9}), 0, 0.5f);
  const auto b = dropout(ones(2, 64), keys({9, 5}), 0, 0.5f);
  EXPECT_TRUE(
      mx::array_equal(mx::take(a, 0, 0), mx::take(b, 1, 0)).item<bool>()
  );
  EXPECT_FALSE(
      mx::array_equal(mx::take(a, 0, 0), mx::take(b, 0, 0)).item<bool>()
  );
}

TEST(Dropout, LayersDiffer) {
  const auto a = dropout(ones(1, 64), keys({5}), 0, 0.5f);
  const auto b = dropout(ones(1, 64), keys({5}), 1, 0.5f);
  EXPECT_FALSE(mx::array_equal(a, b).item<bool>());
}

TEST(AddNoise, IsUniformWithinItsMagnitude) {
  const auto y =
      add_noise(mx::zeros({1, 100000}, mx::float32), keys({1}), 0, 0.5f);
  auto mean = mx::mean(y), square = mx::mean(mx::square(y));
  auto most = mx::max(mx::abs(y));
  EXPECT_NEAR(mean.item<float>(), 0, 0.005);
  EXPECT_NEAR(square.item<float>(), 0.25 / 3, 0.002);
  EXPECT_LE(most.item<float>(), 0.5f);
}

TEST(Dropout, RefusesARateOfOne) {
  EXPECT_THROW(dropout(ones(1, 4), keys({1}), 0, 1.0f), UsageError);
}

}  // namespace
}  // namespace hearth::ops
