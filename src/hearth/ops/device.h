#pragma once
// The devices MLX can use here, and the switch to one of them.
#include <string>
#include <string_view>
#include <vector>

#include "hearth/hardware/device.h"

namespace hearth::ops {

std::string mlx_version();

// GPUs first, the CPU last; never empty.
std::vector<hardware::Device> available_devices();

// Chooses as hardware::choose_device() says and makes it MLX's default.
hardware::DeviceChoice use_device(std::string_view wanted);

}  // namespace hearth::ops
