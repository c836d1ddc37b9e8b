#pragma once
// What this machine is. Everything here is filled from text the system gives
// out (linux_machine.h, mac_machine.h); nothing is guessed: what is not known
// stays empty or 0.
#include <cstddef>
#include <string>
#include <vector>

namespace hearth::hardware {

struct CoreCluster {
  std::string kind;  // "performance", "efficiency", or the system's own name
  int cores = 0;
};

struct Cpu {
  std::string vendor, model, architecture;  // x86_64, arm64
  int physical_cores = 0, logical_cores = 0, sockets = 0, numa_nodes = 0;
  std::vector<CoreCluster> clusters;  // fastest first; Apple chips
  std::size_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // l3: whole machine
  std::vector<std::string> flags;  // the features kernels can use
  int usable_threads = 0;          // affinity mask and CPU quota considered
  double quota = 0;                // cores' worth of time; 0: no limit
};

struct Memory {
  std::size_t total = 0, available = 0;
  std::size_t swap_total = 0, swap_used = 0;
  std::size_t cgroup_limit = 0, cgroup_used = 0;  // 0: no limit
  std::string cgroup;                             // "v1", "v2" or empty
  std::string huge_pages;  // always, madvise, never; empty where unknown
};

struct AppleGpu {
  std::string name, architecture;
  int cores = 0;
  std::size_t recommended_working_set = 0;
};

struct Power {
  std::string source;  // "ac", "battery"
  bool low_power = false;
  std::string thermal;  // "nominal", "fair", "serious", "critical"
};

struct Machine {
  std::string os, os_version, kernel;  // os: "linux", "macos"
  bool virtual_machine = false;
  Cpu cpu;
  Memory memory;
  AppleGpu apple_gpu;
  Power power;
  // NVIDIA's driver is loaded; what its devices are, MLX tells (ops/device.h).
  bool nvidia_driver = false;
};

// Asks the system. The parts that need it are in detect_*.cpp.
Machine detect();

// Threads a team should have here: physical cores this process may use.
int usable_threads();

// Memory a training run may take, and how that was found.
struct SafeMemory {
  std::size_t bytes = 0;
  std::string derivation;
};
SafeMemory safe_memory(const Machine& machine);

// Things worth acting on before a long run.
struct Warning {
  std::string what, remedy;
};
std::vector<Warning> warnings(const Machine& machine);

}  // namespace hearth::hardware
