#pragma once
// A Mac described by its sysctl values and what Metal says of its GPU. A
// function of captured text, so that it is tested where there is no Mac;
// detect_mac.cpp gathers the text.
#include <cstddef>
#include <map>
#include <string>

#include "hearth/hardware/machine.h"

namespace hearth::hardware {

struct MacFacts {
  std::map<std::string, std::string> sysctl;  // name -> value as text
  std::string metal_name, metal_architecture;
  int gpu_cores = 0;
  std::size_t recommended_working_set = 0, free_memory = 0;
  std::string power_source, thermal_state;  // as Power says them
  bool low_power = false;
};

Machine describe_mac(const MacFacts& facts);

// The lines of `sysctl -a`: "hw.memsize: 17179869184".
std::map<std::string, std::string> read_sysctl(const std::string& text);

}  // namespace hearth::hardware
