// When this process was started, on Linux.
#include <fstream>
#include <string>

#include <unistd.h>

#include "hearth/serve/metrics.h"

namespace hearth::serve {
namespace {

// When the system was started.
double boot_seconds() {
  std::ifstream stat("/proc/stat");
  std::string word;
  while (stat >> word) {
    double value = 0;
    if (word == "btime" && stat >> value) return value;
  }
  return 0;
}

}  // namespace

double process_start_seconds() {
  std::ifstream stat("/proc/self/stat");
  std::string line;
  std::getline(stat, line);
  // The name, in parentheses, may hold anything.
  const auto name = line.rfind(')');
  if (name == std::string::npos) return 0;
  line.erase(0, name + 1);
  std::size_t at = 0;
  // The twentieth after the name: the time since the system's start, in ticks.
  for (int field = 0; field < 20 && at != std::string::npos; ++field) {
    at = line.find(' ', at + (field > 0 ? 1 : 0));
  }
  const double boot = boot_seconds();
  if (at == std::string::npos || boot == 0) return 0;
  const double ticks = std::stod(line.substr(at + 1));
  return boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace hearth::serve
