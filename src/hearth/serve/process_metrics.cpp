// Metrics of the process itself, by the names that Prometheus uses.
#include <filesystem>

#include <sys/resource.h>

#include "hearth/serve/metrics.h"

namespace hearth::serve {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

double cpu_seconds() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Both systems list a process's descriptors in this folder; one descriptor is
// the one that reads the list.
double open_files() {
  std::error_code failed;
  double count = -1;
  for (std::filesystem::directory_iterator at("/dev/fd", failed), end;
       !failed && at != end; at.increment(failed)) {
    ++count;
  }
  return count;
}

double most_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

std::string process_metrics_text() {
  std::string out;
  const auto add = [&](const char* name, const char* type, const char* help,
                       double value) {
    if (value > 0) out += metric_text(name, type, help, value);
  };
  add("process_resident_memory_bytes", "gauge", "Memory of the process.",
      static_cast<double>(resident_bytes()));
  add("process_start_time_seconds", "gauge",
      "When the process was started, since 1970.", process_start_seconds());
  add("process_cpu_seconds_total", "counter", "Processor time of the process.",
      cpu_seconds());
  add("process_open_fds", "gauge", "Open file descriptors.", open_files());
  add("process_max_fds", "gauge", "Open file descriptors there may be.",
      most_files());
  return out;
}

}  // namespace hearth::serve
