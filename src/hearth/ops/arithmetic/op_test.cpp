// In-place arithmetic and stochastic rounding.
#include "hearth/ops/arithmetic/op.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/arithmetic/gpu_squares.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

class Arithmetic : public testing::TestWithParam<const kernels::Table*> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

// The bits that Philox gives for element i, read from base's own generator.
std::uint32_t noise_of(RandomKey key, std::size_t i) {
  const auto block = random_block(key, i / 128 * 16 + i % 16);
  const std::size_t w = i / 16 % 8;
  return w % 2 == 0 ? block[w / 2] & 0xffff : block[w / 2] >> 16;
}

TEST_P(Arithmetic, StochasticCastFollowsTheGenerator) {
  const ScopedExecution forced(*GetParam());
  const RandomKey key(77);
  for (int n : {1, 15, 127, 1000, 70001}) {
    auto x = mx::multiply(
        normal_input({n}, mx::float32, 3), mx::array(1.0009765625f)
    );
    auto y = cast_stochastic(x, key);
    mx::eval(x, y);
    for (int i = 0; i < n; ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, x.data<float>() + i, 4);
      bits += noise_of(key, static_cast<std::size_t>(i));
      ASSERT_EQ(y.data<std::uint16_t>()[i], bits >> 16) << i << " of " << n;
    }
  }
}

TEST_P(Arithmetic, AGpuCastsStochasticallyWithTheSameNumbers) {
  const ScopedExecution forced(*GetParam());
  for (int n : {1, 15, 127, 129, 1000}) {
    const auto x = mx::multiply(
        normal_input({n}, mx::float32, 3), mx::array(1.0009765625f)
    );
    const auto want = cast_stochastic(x, RandomKey(~77ull));
    const ScopedFace gpu(Face::gpu);
    const auto got = cast_stochastic(x, RandomKey(~77ull));
    EXPECT_TRUE(mx::array_equal(got, want).item<bool>()) << n;
  }
}

TEST_P(Arithmetic, AScaleIsNotRoundedToWhatItScales) {
  const ScopedExecution forced(*GetParam());
  // 192.58 is nearer to bfloat16's 193 than to 192; the factor itself would be
  // rounded to 1.
  const auto x = mx::full({5}, 192.0f, mx::bfloat16);
  for (const Face face : {Face::kernels, Face::gpu}) {
    const ScopedFace f(face);
    const auto y = scale(x, mx::array(1.003f));
    EXPECT_EQ(mx::max(mx::astype(y, mx::float32)).item<float>(), 193);
  }
}

TEST_P(Arithmetic, StochasticCastIsRightOnAverage) {
  const ScopedExecution forced(*GetParam());
  // 1 + 1/512: a quarter of the way from 1 to bfloat16's next value.
  auto y = mx::astype(
      cast_stochastic(mx::full({1 << 16}, 1.001953125f), RandomKey(9)),
      mx::float32
  );
  const double mean = mx::mean(y).item<float>();
  // The standard error is sqrt(3)/4 * 2^-7 / 2^8 = 1.3e-5.
  EXPECT_NEAR(mean, 1.001953125, 6e-5);
  const float special[] = {INFINITY, -INFINITY, NAN, 0.0f};
  auto z = mx::astype(
      cast_stochastic(mx::array(special, {4}), RandomKey(9)), mx::float32
  );
  z.eval();
  EXPECT_EQ(z.data<float>()[0], INFINITY);
  EXPECT_EQ(z.data<float>()[1], -INFINITY);
  EXPECT_TRUE(std::isnan(z.data<float>()[2]));
  EXPECT_EQ(z.data<float>()[3], 0.0f);
}

TEST_P(Arithmetic, SumOfSquaresIsRightAndTheSameOnAnyPool) {
  Arrays all{
      normal_input({100003}, mx::float32, 1),
      normal_input({33, 5}, mx::bfloat16, 2)
  };
  double want = 0;
  for (const auto& a : all) {
    auto d = mx::astype(a, mx::float64);
    d.eval();
    for (std::size_t i = 0; i < d.size(); ++i) {
      want += d.data<double>()[i] * d.data<double>()[i];
    }
  }
  ThreadPool one(1), three(3);
  double got[2];
  int k = 0;
  for (ThreadPool* pool : {&one, &three}) {
    const ScopedExecution forced(*GetParam(), pool);
    got[k++] = sum_squares(all);
  }
  EXPECT_NEAR(got[0], want, 1e-6 * want);
  EXPECT_EQ(got[0], got[1]);
  const float bad[] = {1, NAN};
  const mx::array nan(bad, {2});
  EXPECT_TRUE(std::isnan(sum_squares(std::span(&nan, 1))));
}

TEST_P(Arithmetic, AccumulateAndScaleInPlace) {
  const ScopedExecution forced(*GetParam());
  auto sum = make_leaf({1000}, mx::float32, MemoryZone::named("test"));
  const auto x = normal_input({1000}, mx::bfloat16, 4);
  auto wide = mx::astype(x, mx::float32);
  wide.eval();
  accumulate(sum, x, 2);
  accumulate(sum, wide, 1);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FLOAT_EQ(sum.data<float>()[i], 3 * wide.data<float>()[i]);
  }
  scale_in_place(std::span(&sum, 1), 0.5f);
  EXPECT_FLOAT_EQ(sum.data<float>()[7], 1.5f * wide.data<float>()[7]);
  auto shorter = mx::ones({999});
  shorter.eval();
  EXPECT_THROW(accumulate(sum, shorter, 1), UsageError);
  EXPECT_THROW(accumulate(sum, mx::ones({1000}), 1), UsageError);
}

INSTANTIATE_TEST_SUITE_P(
    Tables,
    Arithmetic,
    testing::ValuesIn(
        kernels::usable_tables().begin(),
        kernels::usable_tables().end()
    ),
    [](const auto& table) { return std::string(table.param->isa); }
);

// Mixed types, more arrays than one kernel takes, sizes that eight does not
// divide.
TEST(SumSquaresGraph, IsTheSumOfAllSquares) {
  const ScopedFace gpu(Face::gpu);
  mx::set_default_device(mx::Device::cpu);
  Arrays all{mx::zeros({0})};
  double want = 0;
  for (int i = 0; i < 11; ++i) {
    const auto dtype = i % 3 == 0 ? mx::float32 : mx::bfloat16;
    all.push_back(normal_input({i * i + 1, 37}, dtype, std::uint64_t(i)));
    const auto wide = mx::astype(all.back(), mx::float64);
    want += mx::sum(mx::square(wide)).item<double>();
  }
  EXPECT_NEAR(sum_squares_graph(all).item<float>() / want, 1, 1e-5);
  EXPECT_EQ(sum_squares_graph({}).item<float>(), 0);
}

}  // namespace
}  // namespace hearth::ops
