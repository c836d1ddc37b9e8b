// How many cores this process may run on, on Linux.
#include <algorithm>
#include <thread>

#include <sched.h>

#include "hearth/base/thread_pool.h"

namespace hearth {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace hearth
