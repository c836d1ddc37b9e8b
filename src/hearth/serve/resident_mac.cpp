// Unverified until it has run on a Mac.
#include <mach/mach.h>

#include "hearth/serve/metrics.h"

namespace hearth::serve {

std::uint64_t resident_bytes() {
  mach_task_basic_info info{};
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  const auto status = task_info(
      mach_task_self(), MACH_TASK_BASIC_INFO,
      reinterpret_cast<task_info_t>(&info), &count
  );
  return status == KERN_SUCCESS ? info.resident_size : 0;
}

}  // namespace hearth::serve
