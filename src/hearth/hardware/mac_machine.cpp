#include "hearth/hardware/mac_machine.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

namespace hearth::hardware {
namespace {

class Sysctl {
 public:
  explicit Sysctl(const std::map<std::string, std::string>& values)
      : values_(values) {}
  std::string text(const std::string& name) const {
    const auto it = values_.find(name);
    return it == values_.end() ? "" : it->second;
  }
  std::size_t number(const std::string& name) const {
    const std::string t = text(name);
    std::size_t value = 0;
    std::from_chars(t.data(), t.data() + t.size(), value);
    return value;
  }
  int count(const std::string& name) const {
    return static_cast<int>(number(name));
  }

 private:
  const std::map<std::string, std::string>& values_;
};

// Clusters are levels, fastest first. Their names are the system's where it
// gives them: chips with super, performance and efficiency cores exist, so
// "level 0 is P, level 1 is E" would be a guess.
void read_clusters(const Sysctl& s, Cpu& cpu) {
  const int levels = s.count("hw.nperflevels");
  for (int i = 0; i < levels; ++i) {
    const std::string level = fmt::format("hw.perflevel{}.", i);
    CoreCluster c{s.text(level + "name"), s.count(level + "physicalcpu")};
    if (c.kind.empty()) c.kind = fmt::format("level {}", i);
    std::transform(c.kind.begin(), c.kind.end(), c.kind.begin(), [](char x) {
      return x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x;
    });
    if (i == 0) cpu.l2_bytes = s.number(level + "l2cachesize");
    cpu.clusters.push_back(std::move(c));
  }
}

}  // namespace

std::map<std::string, std::string> read_sysctl(const std::string& text) {
  std::map<std::string, std::string> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": ");
    if (colon != std::string::npos) {
      values[line.substr(0, colon)] = line.substr(colon + 2);
    }
  }
  return values;
}

Machine describe_mac(const MacFacts& facts) {
  const Sysctl s(facts.sysctl);
  Machine m;
  m.os = "macos";
  m.os_version = fmt::format(
      "macOS {} ({})", s.text("kern.osproductversion"), s.text("kern.osversion")
  );
  m.kernel = s.text("kern.osrelease");
  m.virtual_machine = s.number("kern.hv_vmm_present") == 1;
  m.cpu.vendor = "Apple";
  m.cpu.model = s.text("machdep.cpu.brand_string");
  m.cpu.architecture = s.number("hw.optional.arm64") == 1 ? "arm64" : "x86_64";
  m.cpu.physical_cores = s.count("hw.physicalcpu");
  m.cpu.logical_cores = s.count("hw.logicalcpu");
  m.cpu.sockets = 1;
  m.cpu.numa_nodes = 1;
  m.cpu.l1d_bytes = s.number("hw.l1dcachesize");
  m.cpu.l2_bytes = s.number("hw.l2cachesize");
  read_clusters(s, m.cpu);
  if (m.cpu.architecture == "arm64") m.cpu.flags.emplace_back("asimd");
  for (const char* feature : {"FEAT_BF16", "FEAT_I8MM", "FEAT_SME"}) {
    if (s.number(fmt::format("hw.optional.arm.{}", feature)) == 1) {
      m.cpu.flags.emplace_back(feature);
    }
  }
  // The fastest cluster alone: slower cores would hold a team back at each
  // barrier.
  m.cpu.usable_threads = m.cpu.clusters.empty() ? m.cpu.physical_cores
                                                : m.cpu.clusters.front().cores;
  m.memory.total = s.number("hw.memsize");
  m.memory.available = facts.free_memory;
  m.apple_gpu = {
      facts.metal_name, facts.metal_architecture, facts.gpu_cores,
      facts.recommended_working_set
  };
  m.power = {facts.power_source, facts.low_power, facts.thermal_state};
  return m;
}

}  // namespace hearth::hardware
