#include "hearth/ops/pace.h"

#include <gtest/gtest.h>
#include <mlx/transforms.h>

namespace hearth::ops {
namespace {

TEST(Pace, IsTheIdentityAndSoIsItsGradient) {
  const ScopedFace gpu(Face::gpu);
  mx::set_default_device(mx::Device::cpu);
  const auto x = mx::array({1.0f, -2.0f, 3.0f});
  const auto ct = mx::array({5.0f, 6.0f, 7.0f});
  const auto f = [](const Arrays& in) { return Arrays{pace(in[0])}; };
  const auto [y, g] = mx::vjp(f, Arrays{x}, Arrays{ct});
  EXPECT_TRUE(mx::array_equal(y[0], x).item<bool>());
  EXPECT_TRUE(mx::array_equal(g[0], ct).item<bool>());
  EXPECT_STREQ(pace(x).primitive().name(), "Pace");
}

TEST(Pace, IsNothingToKernels) {
  const ScopedFace kernels(Face::kernels);
  const auto x = mx::array({1.0f});
  EXPECT_EQ(pace(x, mx::Device::cpu).id(), x.id());
}

}  // namespace
}  // namespace hearth::ops
