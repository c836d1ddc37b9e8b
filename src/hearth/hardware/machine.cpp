#include "hearth/hardware/machine.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/units.h"

namespace hearth::hardware {
namespace {

// What the process itself, its libraries and the page tables need beside the
// arrays a budget counts.
constexpr std::size_t kReserve = std::size_t{256} << 20;

SafeMemory less_reserve(std::size_t bytes, std::string derivation) {
  const std::size_t reserve = std::min(kReserve, bytes / 4);
  return {
      bytes - reserve, fmt::format(
                           "{}, less {} for the process itself", derivation,
                           format_bytes(reserve)
                       )
  };
}

}  // namespace

int usable_threads() {
  static const int threads = detect().cpu.usable_threads;
  return std::max(1, threads);
}

SafeMemory safe_memory(const Machine& machine) {
  const Memory& m = machine.memory;
  if (machine.os == "macos") {
    if (machine.apple_gpu.recommended_working_set > 0) {
      return {
          machine.apple_gpu.recommended_working_set,
          "Metal's recommendedMaxWorkingSetSize"
      };
    }
    return less_reserve(m.available, "free and reclaimable memory");
  }
  if (m.cgroup_limit > 0) {
    const std::size_t left =
        m.cgroup_limit - std::min(m.cgroup_used, m.cgroup_limit);
    if (left < m.available) {
      return less_reserve(
          left, fmt::format(
                    "cgroup {} limit {} minus {} in use", m.cgroup,
                    format_bytes(m.cgroup_limit), format_bytes(m.cgroup_used)
                )
      );
    }
  }
  return less_reserve(m.available, "MemAvailable");
}

std::vector<Warning> warnings(const Machine& machine) {
  std::vector<Warning> found;
  const Memory& m = machine.memory;
  if (m.swap_used > m.total / 50) {
    found.push_back(
        {fmt::format("{} of swap are in use", format_bytes(m.swap_used)),
         "close other programs: a step that swaps is a hundred times slower"}
    );
  }
  if (m.cgroup_limit > 0 && m.cgroup_limit < m.total) {
    found.push_back(
        {fmt::format(
             "a cgroup limits memory to {} of {}", format_bytes(m.cgroup_limit),
             format_bytes(m.total)
         ),
         "raise the container's limit if the machine is yours"}
    );
  }
  if (machine.cpu.quota > 0 && machine.cpu.quota < machine.cpu.logical_cores) {
    found.push_back(
        {fmt::format(
             "a CPU quota allows {:.1f} of {} cores", machine.cpu.quota,
             machine.cpu.logical_cores
         ),
         "raise the container's CPU limit if the machine is yours"}
    );
  }
  if (m.huge_pages == "never") {
    found.push_back(
        {"transparent huge pages are off",
         "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"}
    );
  }
  if (machine.power.low_power) {
    found.push_back(
        {"low power mode is on", "turn it off in System Settings, Battery"}
    );
  }
  if (machine.power.source == "battery") {
    found.push_back({"the machine runs on battery", "plug it in"});
  }
  if (machine.power.thermal == "serious" ||
      machine.power.thermal == "critical") {
    found.push_back(
        {fmt::format("thermal pressure is {}", machine.power.thermal),
         "let it cool: every figure taken now is too low"}
    );
  }
  return found;
}

}  // namespace hearth::hardware
