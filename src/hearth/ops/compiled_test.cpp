#include "hearth/ops/compiled.h"

#include <gtest/gtest.h>

#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

Arrays shifted(
    const Arrays& in,
    mx::StreamOrDevice s,
    float by,
    mx::Dtype type
) {
  return {mx::astype(mx::add(in[0], mx::array(by), s), type, s)};
}

TEST(Compiled, ACpuRunsTheFunctionItself) {
  const mx::StreamOrDevice cpu = mx::Device::cpu;
  EXPECT_FALSE(compiles(cpu));
  const ScopedFace gpu(Face::gpu);
  EXPECT_FALSE(compiles(cpu)) << "the GPU's face on a CPU";
  const auto y = compiled(
      shifted, {mx::zeros({3}, mx::float32, cpu)}, cpu, 2, mx::float16
  );
  EXPECT_EQ(y[0].dtype(), mx::float16);
  EXPECT_EQ(mx::sum(mx::astype(y[0], mx::float32, cpu), cpu).item<float>(), 6);
}

TEST(Compiled, ConstantsTellEntriesApart) {
  if (!mx::is_available(mx::Device::gpu)) GTEST_SKIP() << "no GPU";
  const mx::StreamOrDevice gpu = mx::Device::gpu;
  const auto x = mx::zeros({3}, mx::float32, gpu);
  for (const float by : {1.0f, 2.0f, 1.0f}) {
    const auto y = compiled(shifted, {x}, gpu, by, mx::float32);
    EXPECT_EQ(mx::max(y[0], gpu).item<float>(), by);
  }
}

}  // namespace
}  // namespace hearth::ops
