#include "hearth/hardware/process_peak.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <sys/resource.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace hearth::hardware {

bool reset_process_peak() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
  std::FILE* f = std::fopen("/proc/self/clear_refs", "w");
  if (f == nullptr) return false;
  const bool written = std::fputs("5", f) >= 0;
  return std::fclose(f) == 0 && written;
}

std::size_t process_peak() {
  if (std::FILE* f = std::fopen("/proc/self/status", "r")) {
    char line[256];
    unsigned long kib = 0;
    while (std::fgets(line, sizeof line, f) != nullptr) {
      if (!std::string_view(line).starts_with("VmHWM:")) continue;
      kib = std::strtoul(line + 6, nullptr, 10);
      break;
    }
    std::fclose(f);
    if (kib > 0) return kib * std::size_t{1024};
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
  return static_cast<std::size_t>(usage.ru_maxrss);
#else
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
#endif
}

}  // namespace hearth::hardware
