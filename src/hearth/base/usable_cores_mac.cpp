// macOS has no affinity masks; performance cores alone would be the better
// team, and `hardware` picks them.
#include <algorithm>
#include <thread>

#include "hearth/base/thread_pool.h"

namespace hearth {

int usable_cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace hearth
