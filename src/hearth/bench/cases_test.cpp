#include "hearth/bench/cases.h"

#include <gtest/gtest.h>

#include "hearth/kernels/table.h"

namespace hearth::bench {
namespace {

// A stream of a device that need not be here: only its name is asked.
TEST(Cases, RowsAreCalledByWhatComputesThem) {
  const mlx::core::Stream gpu(1, mlx::core::Device::gpu);
  EXPECT_EQ(device_isa(gpu), "gpu");
  const mlx::core::Stream cpu(0, mlx::core::Device::cpu);
  EXPECT_EQ(device_isa(cpu), kernels::best().isa);
}

}  // namespace
}  // namespace hearth::bench
