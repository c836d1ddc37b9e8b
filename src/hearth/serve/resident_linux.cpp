// How much memory this process holds, on Linux.
#include <fstream>

#include <unistd.h>

#include "hearth/serve/metrics.h"

namespace hearth::serve {

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  if (!(statm >> all >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace hearth::serve
