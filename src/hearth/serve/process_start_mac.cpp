// Unverified until it has run on a Mac.
#include <sys/sysctl.h>
#include <unistd.h>

#include "hearth/serve/metrics.h"

namespace hearth::serve {

double process_start_seconds() {
  int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, getpid()};
  kinfo_proc info{};
  size_t size = sizeof info;
  if (sysctl(name, 4, &info, &size, nullptr, 0) != 0 || size == 0) return 0;
  const timeval& start = info.kp_proc.p_starttime;
  return static_cast<double>(start.tv_sec) +
         static_cast<double>(start.tv_usec) * 1e-6;
}

}  // namespace hearth::serve
