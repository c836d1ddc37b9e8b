#include "hearth/hardware/device.h"

#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::hardware {
namespace {

const Device kCpu{DeviceKind::kCpu, 0, "a CPU", "", 0};
const Device kGpu{DeviceKind::kCuda, 0, "a GPU", "sm_90", 1};
const Device kMac{DeviceKind::kMetal, 0, "Apple M1", "", 0};

TEST(Device, AutoTakesMetalThenCudaThenCpu) {
  EXPECT_EQ(
      choose_device("auto", std::vector{kGpu, kMac, kCpu}).device.kind,
      DeviceKind::kMetal
  );
  EXPECT_EQ(
      choose_device("auto", std::vector{kGpu, kCpu}).device.kind,
      DeviceKind::kCuda
  );
  EXPECT_EQ(
      choose_device("auto", std::vector{kCpu}).device.kind, DeviceKind::kCpu
  );
}

TEST(Device, AskingForWhatIsNotThereIsAnErrorThatListsWhatIs) {
  try {
    choose_device("metal", std::vector{kGpu, kCpu});
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_STREQ(
        e.what(),
        "--device metal must be available on this machine, it has "
        "cuda (a GPU), cpu (a CPU)"
    );
  }
  EXPECT_THROW(choose_device("gpu", std::vector{kCpu}), UsageError);
}

}  // namespace
}  // namespace hearth::hardware
