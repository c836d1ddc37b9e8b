#include "hearth/hardware/linux_machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "hearth/base/ascii.h"

namespace hearth::hardware {
namespace {

std::string trim(const std::string& text) {
  return std::string(trimmed(text, " \t\n\r\""));
}

std::size_t to_number(const std::string& text) {
  std::size_t value = 0;
  const std::string t = trim(text);
  std::from_chars(t.data(), t.data() + t.size(), value);
  return value;
}

// "512K", "32M", "1024K" as sysfs writes cache sizes.
std::size_t to_bytes(const std::string& text) {
  const std::string t = trim(text);
  std::size_t scale = 1;
  if (t.ends_with('K')) scale = 1 << 10;
  if (t.ends_with('M')) scale = 1 << 20;
  return to_number(t) * scale;
}

// Calls fn(key, value) for each "key : value" line.
template <class Fn>
void each_pair(const std::string& text, char separator, Fn&& fn) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(separator);
    if (at == std::string::npos) continue;
    fn(trim(line.substr(0, at)), trim(line.substr(at + 1)));
  }
}

const std::set<std::string>& kernel_features() {
  static const std::set<std::string> names{
      "avx2",     "fma",      "f16c",        "avx512f",     "avx512bw",
      "avx512dq", "avx512vl", "avx512_bf16", "avx512_vnni", "avx512_fp16",
      "avx_vnni", "amx_tile", "amx_bf16",    "amx_int8",    "amx_fp16",
      "asimd",    "asimddp",  "asimdhp",     "i8mm",        "bf16",
      "sve",      "sve2",     "sme",
  };
  return names;
}

// Arm names its parts by number; the model name comes from the two.
std::string arm_model(const std::string& implementer, const std::string& part) {
  struct Known {
    const char *implementer, *part, *name;
  };
  static constexpr Known kKnown[] = {
      {"0x41", "0xd0c", "Arm Neoverse N1"},
      {"0x41", "0xd40", "Arm Neoverse V1"},
      {"0x41", "0xd49", "Arm Neoverse N2"},
      {"0x41", "0xd4f", "Arm Neoverse V2"},
      {"0x41", "0xd0b", "Arm Cortex-A76"},
      {"0x41", "0xd08", "Arm Cortex-A72"},
      {"0x41", "0xd85", "Arm Cortex-X925"},
      {"0xc0", "0xac3", "Ampere-1"},
      {"0x61", "0x022", "Apple M1"},
      {"0x61", "0x032", "Apple M2"},
  };
  for (const Known& k : kKnown) {
    if (implementer == k.implementer && part == k.part) return k.name;
  }
  return fmt::format("Arm implementer {} part {}", implementer, part);
}

}  // namespace

int count_cpu_list(const std::string& text) {
  int count = 0;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::string range = trim(part);
    if (range.empty()) continue;
    const auto dash = range.find('-');
    const auto low = to_number(range.substr(0, dash));
    const auto high =
        dash == std::string::npos ? low : to_number(range.substr(dash + 1));
    if (high >= low) count += static_cast<int>(high - low + 1);
  }
  return count;
}

void read_cpuinfo(const std::string& text, Cpu& cpu) {
  std::set<std::pair<std::string, std::string>> cores;
  std::set<std::string> sockets;
  std::string socket = "0", implementer, part;
  each_pair(text, ':', [&](const std::string& key, const std::string& value) {
    if (key == "processor") ++cpu.logical_cores;
    if (key == "vendor_id") cpu.vendor = value;
    if (key == "model name") cpu.model = value;
    if (key == "physical id") sockets.insert(socket = value);
    if (key == "core id") cores.emplace(socket, value);
    if (key == "CPU implementer") implementer = value;
    if (key == "CPU part") part = value;
    if ((key == "flags" || key == "Features") && cpu.flags.empty()) {
      std::istringstream words(value);
      for (std::string w; words >> w;) {
        if (kernel_features().contains(w)) cpu.flags.push_back(w);
      }
    }
  });
  if (cpu.model.empty() && !part.empty()) {
    cpu.model = arm_model(implementer, part);
    cpu.vendor = implementer == "0x61" ? "Apple" : "ARM";
  }
  cpu.sockets = std::max<int>(1, static_cast<int>(sockets.size()));
  // Without topology (Arm, some virtual machines) every processor is a core.
  cpu.physical_cores =
      cores.empty() ? cpu.logical_cores : static_cast<int>(cores.size());
}

void read_meminfo(const std::string& text, Memory& memory) {
  std::size_t swap_free = 0;
  each_pair(text, ':', [&](const std::string& key, const std::string& value) {
    const std::size_t bytes = to_number(value) * 1024;  // "12345 kB"
    if (key == "MemTotal") memory.total = bytes;
    if (key == "MemAvailable") memory.available = bytes;
    if (key == "SwapTotal") memory.swap_total = bytes;
    if (key == "SwapFree") swap_free = bytes;
  });
  memory.swap_used = memory.swap_total - std::min(swap_free, memory.swap_total);
}

std::string read_os_release(const std::string& text) {
  std::string pretty;
  each_pair(text, '=', [&](const std::string& key, const std::string& value) {
    if (key == "PRETTY_NAME") pretty = value;
  });
  return pretty;
}

namespace {

void read_caches(const FileReader& read, Cpu& cpu) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder =
        fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    const auto level = read(folder + "level"), size = read(folder + "size");
    if (!level || !size) break;
    const std::string type = trim(read(folder + "type").value_or(""));
    const std::size_t bytes = to_bytes(*size);
    if (trim(*level) == "1" && type == "Data") cpu.l1d_bytes = bytes;
    if (trim(*level) == "2") cpu.l2_bytes = bytes;
    if (trim(*level) == "3") {
      // A cache is shared by some processors; the machine has as many of it as
      // that takes.
      const int sharers =
          count_cpu_list(read(folder + "shared_cpu_list").value_or(""));
      const int copies =
          sharers > 0 ? std::max(1, cpu.logical_cores / sharers) : 1;
      cpu.l3_bytes = bytes * static_cast<std::size_t>(copies);
    }
  }
}

// "always [madvise] never" -> madvise
std::string bracketed(const std::string& text) {
  const auto open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos) return "";
  return text.substr(open + 1, close - open - 1);
}

int threads_for(const Cpu& cpu, int affinity_cores) {
  int threads = cpu.physical_cores;
  if (affinity_cores > 0) threads = std::min(threads, affinity_cores);
  if (cpu.quota > 0) {
    threads = std::min(threads, static_cast<int>(std::ceil(cpu.quota - 0.01)));
  }
  return std::max(1, threads);
}

}  // namespace

Machine describe_linux(
    const FileReader& read,
    const std::string& architecture,
    int affinity_cores
) {
  Machine m;
  m.os = "linux";
  m.os_version = read_os_release(read("/etc/os-release").value_or(""));
  m.kernel = trim(read("/proc/sys/kernel/osrelease").value_or(""));
  m.cpu.architecture = architecture == "aarch64" ? "arm64" : architecture;
  const std::string cpuinfo = read("/proc/cpuinfo").value_or("");
  read_cpuinfo(cpuinfo, m.cpu);
  m.virtual_machine = cpuinfo.find(" hypervisor") != std::string::npos;
  m.cpu.numa_nodes = std::max(
      1, count_cpu_list(read("/sys/devices/system/node/online").value_or(""))
  );
  read_caches(read, m.cpu);
  read_meminfo(read("/proc/meminfo").value_or(""), m.memory);
  m.memory.huge_pages = bracketed(
      read("/sys/kernel/mm/transparent_hugepage/enabled").value_or("")
  );
  read_cgroups(read, m.memory, m.cpu);
  m.cpu.usable_threads = threads_for(m.cpu, affinity_cores);
  m.nvidia_driver = read("/proc/driver/nvidia/version").has_value();
  return m;
}

}  // namespace hearth::hardware
