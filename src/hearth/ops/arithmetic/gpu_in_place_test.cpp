// What a GPU runs against the kernels, on a CPU.
#include "hearth/ops/arithmetic/gpu_in_place.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

class InPlaceGpu : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }

  static void expect_near(const mx::array& a, const mx::array& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float x = a.data<float>()[i], y = b.data<float>()[i];
      ASSERT_NEAR(x, y, 1e-6 * (1 + std::abs(y))) << i;
    }
  }
};

TEST_F(InPlaceGpu, AddsAndScalesWhatOthersHold) {
  const auto start = normal_input({7, 300}, mx::float32, 1);
  const auto x = normal_input({7, 300}, mx::bfloat16, 2);
  auto ours = leaf_input(start), plain = leaf_input(start);
  const mx::array held = plain;
  accumulate(ours, x, 0.25f);
  accumulate_gpu(plain, x, 0.25f);
  expect_near(held, ours);
  std::vector<mx::array> both{plain}, own{ours};
  scale_in_place(own, -3);
  scale_in_place_gpu(both, -3);
  expect_near(held, ours);
}

TEST_F(InPlaceGpu, MeasuresAsTheKernelsDo) {
  const std::vector<mx::array> arrays{
      normal_input({70, 1000}, mx::float32, 1),
      normal_input({3, 5}, mx::bfloat16, 2), mx::array(0.5f)
  };
  const double want = sum_squares(arrays);
  EXPECT_NEAR(sum_squares_gpu(arrays), want, 1e-5 * want);
  EXPECT_EQ(sum_squares_gpu({}), 0);
}

}  // namespace
}  // namespace hearth::ops
