#include "hearth/serve/http/file_limit.h"

#include <algorithm>

#include <sys/resource.h>

namespace hearth::serve {

std::size_t connections_that_fit(std::size_t wanted) {
  // Descriptors for the model's files, pipes, the listening socket, and
  // connections that are only told that the server is full.
  const std::size_t others = 64 + wanted / 8;
  const rlim_t needed = wanted + others;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < needed) {
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY
                         ? needed
                         : std::min(needed, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed) {
    return wanted;
  }
  const auto files = static_cast<std::size_t>(limit.rlim_cur);
  const std::size_t fit = files > others ? files - others : files / 2;
  return std::clamp<std::size_t>(fit, 1, wanted);
}

}  // namespace hearth::serve
