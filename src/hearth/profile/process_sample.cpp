#include "hearth/profile/process_sample.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

#include "hearth/base/clock.h"

namespace hearth::profile {
namespace {

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

// Whole pages: size, resident, shared, ... Absent where there is no /proc.
void read_memory(ProcessSample& s) {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0, resident = 0, shared = 0;
  if (!(statm >> size >> resident >> shared)) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  s.resident = resident * page;
  s.anonymous = (resident - shared) * page;
}

// The pressure file of this process's control group, where it has its own; else
// of the machine, where other processes may be the ones that wait.
std::string find_pressure_file() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      std::string path = root + line.substr(3) + "/memory.pressure";
      if (access(path.c_str(), R_OK) == 0) return path;
    }
  }
  return "/proc/pressure/memory";
}

double read_memory_stall() {
  static const std::string path = find_pressure_file();
  std::FILE* f = std::fopen(path.c_str(), "r");
  if (f == nullptr) return -1;
  char line[256] = {};
  double stall = -1;
  if (std::fgets(line, sizeof line, f) != nullptr) {
    if (const char* at = std::strstr(line, "total=")) {
      stall = std::strtod(at + 6, nullptr) * 1e-6;
    }
  }
  std::fclose(f);
  return stall;
}

}  // namespace

ProcessSample sample_process() {
  ProcessSample s;
  read_memory(s);
  s.memory_stall = read_memory_stall();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  s.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
  s.minor_faults = static_cast<std::uint64_t>(usage.ru_minflt);
  s.cpu = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  return s;
}

struct ProcessSampler::State {
  Clock::time_point start = Clock::now();
  std::mutex mutex;
  std::condition_variable stopping;
  bool stop = false;
  std::vector<ProcessSample> samples;
  std::thread thread;

  void take() {
    ProcessSample s = sample_process();
    s.seconds = seconds_since(start);
    samples.push_back(s);
  }
};

ProcessSampler::ProcessSampler(double every_seconds)
    : state_(std::make_unique<State>()) {
  state_->take();
  state_->thread = std::thread([this, every_seconds] {
    State& s = *state_;
    const std::chrono::duration<double> step(every_seconds);
    std::unique_lock lock(s.mutex);
    while (!s.stopping.wait_for(lock, step, [&] { return s.stop; })) s.take();
  });
}

ProcessSampler::~ProcessSampler() {
  stop();
}

std::vector<ProcessSample> ProcessSampler::stop() {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    s.stop = true;
  }
  s.stopping.notify_all();
  if (s.thread.joinable()) {
    s.thread.join();
    s.take();
  }
  return s.samples;
}

}  // namespace hearth::profile
