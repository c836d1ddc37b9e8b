#pragma once
// Which device computes. The choice is pure; ops/device.h asks MLX what there
// is.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hearth::hardware {

enum class DeviceKind { kCpu, kCuda, kMetal };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  std::string name, architecture;
  std::size_t memory = 0;  // 0: shares the machine's
};

std::string_view device_word(DeviceKind kind);  // "cpu", "cuda", "metal"

struct DeviceChoice {
  Device device;
  std::string reason;
};

// wanted is auto, metal, cuda or cpu. auto takes Metal, then CUDA, then the
// CPU. Anything else must be there: UsageError lists what is.
DeviceChoice choose_device(
    std::string_view wanted,
    std::span<const Device> available
);

}  // namespace hearth::hardware
