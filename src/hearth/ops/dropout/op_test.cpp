#include "hearth/ops/dropout/op.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/op_case.h"

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

// Rows of every length around a block of four, as no two may share a word.
TEST(Dropout, AGpuDrawsTheSameNumbers) {
  const mx::StreamOrDevice cpu = mx::Device::cpu;
  for (const auto dtype : {mx::float32, mx::bfloat16, mx::float16}) {
    for (const int dim : {1, 3, 4, 5, 64, 67}) {
      const auto x =
          mx::reshape(normal_input({2 * 3 * dim}, dtype, 9), {2, 3, dim}, cpu);
      const auto k = mx::reshape(
          keys({1, ~0ull, 5, 0, 0x123456789abcdefull, 1ull << 32}), {2, 3}, cpu
      );
      const auto both = [&] {
        return Arrays{
            dropout(x, k, 7, 0.3f, cpu), add_noise(x, k, 11, 0.125f, cpu)
        };
      };
      const Arrays want = both();
      const ScopedFace gpu(Face::gpu);
      const Arrays got = both();
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_TRUE(mx::array_equal(got[i], want[i], cpu).item<bool>())
            << i << " of " << dim;
      }
    }
  }
}

TEST(Dropout, RefusesARateOfOne) {
  EXPECT_THROW(dropout(ones(1, 4), keys({1}), 0, 1.0f), UsageError);
}

}  // namespace
}  // namespace hearth::ops
