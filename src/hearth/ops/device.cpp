#include "hearth/ops/device.h"

#include <cstdint>
#include <cstdlib>
#include <limits>

#include <dlfcn.h>
#include <mlx/backend/cuda/cuda.h>
#include <mlx/backend/metal/metal.h>
#include <mlx/device.h>
#include <mlx/version.h>

#include "hearth/hardware/machine.h"
#include "hearth/ops/gpu_kernel/gpu_kernel.h"
#include "hearth/ops/gpu_kernel/self_check.h"

namespace mx = mlx::core;

namespace hearth::ops {
namespace {

using Info = std::unordered_map<std::string, std::variant<std::string, size_t>>;

std::string text_of(const Info& info, const char* key) {
  const auto it = info.find(key);
  if (it == info.end()) return "";
  const auto* text = std::get_if<std::string>(&it->second);
  return text == nullptr ? "" : *text;
}

size_t number_of(const Info& info, const char* key) {
  const auto it = info.find(key);
  if (it == info.end()) return 0;
  const auto* number = std::get_if<size_t>(&it->second);
  return number == nullptr ? 0 : *number;
}

// MLX's CUDA side sends kernels as graphs, which makes a training step a fifth
// to a half slower than launching them one by one (docs/log/gpu.md), and frees
// what a graph used when all of it has ended. It reads this once, when it
// begins.
void launch_one_by_one() {
  constexpr int kKeepUsers = 0;
  setenv("MLX_USE_CUDA_GRAPHS", "0", kKeepUsers);
  setenv("MLX_MAX_OPS_PER_BUFFER", "20", kKeepUsers);
}

// CUDA's pool of memory hands what is free back to the system at every wait,
// and asks for it again: here it keeps it. MLX has no switch for that; its
// library has brought the driver's with it.
void keep_freed_memory(int device) {
  using GetPool = int(void**, int);
  using SetAttribute = int(void*, int, void*);
  const auto get = reinterpret_cast<GetPool*>(
      dlsym(RTLD_DEFAULT, "cuDeviceGetDefaultMemPool")
  );
  const auto set = reinterpret_cast<SetAttribute*>(
      dlsym(RTLD_DEFAULT, "cuMemPoolSetAttribute")
  );
  void* pool = nullptr;
  if (!get || !set || get(&pool, device) != 0) return;
  constexpr int kReleaseThreshold = 4;  // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
  std::uint64_t everything = std::numeric_limits<std::uint64_t>::max();
  set(pool, kReleaseThreshold, &everything);
}

}  // namespace

std::string mlx_version() {
  return mx::version();
}

std::vector<hardware::Device> available_devices() {
  using hardware::DeviceKind;
  std::vector<hardware::Device> found;
  if (mx::cu::is_available()) launch_one_by_one();
  if (mx::is_available(mx::Device(mx::Device::gpu))) {
    const bool metal = mx::metal::is_available();
    const auto kind = metal ? DeviceKind::kMetal : DeviceKind::kCuda;
    for (int i = 0; i < mx::device_count(mx::Device::gpu); ++i) {
      const mx::Device gpu(mx::Device::gpu, i);
      const Info& info = mx::device_info(gpu);
      // Metal shares the machine's memory; CUDA has its own.
      found.push_back(
          {kind, i, text_of(info, "device_name"), text_of(info, "architecture"),
           metal ? 0 : number_of(info, "total_memory")}
      );
    }
  }
  found.push_back({DeviceKind::kCpu, 0, hardware::detect().cpu.model, "", 0});
  return found;
}

hardware::DeviceChoice use_device(std::string_view wanted) {
  const auto devices = available_devices();
  auto choice = hardware::choose_device(wanted, devices);
  const bool cpu = choice.device.kind == hardware::DeviceKind::kCpu;
  mx::set_default_device(
      mx::Device(cpu ? mx::Device::cpu : mx::Device::gpu, choice.device.index)
  );
  if (choice.device.kind == hardware::DeviceKind::kCuda) {
    keep_freed_memory(choice.device.index);
  }
  if (choice.device.kind == hardware::DeviceKind::kMetal) {
    trust_metal_kernels(true);
    trust_metal_kernels(gpu_kernels_agree({}));
  }
  return choice;
}

}  // namespace hearth::ops
