#pragma once
// What the system says about this process: memory it holds, page faults it
// took, and how long anything here waited for memory. Taken once, or over time
// by a thread of its own.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hearth::profile {

struct ProcessSample {
  double seconds = 0;              // since the sampler began
  std::size_t resident = 0;        // all of it
  std::size_t anonymous = 0;       // its own, not a file's pages
  std::uint64_t major_faults = 0;  // pages that came from disk
  std::uint64_t minor_faults = 0;  // pages that were in memory already
  // Seconds in which some task of this process's control group (else of the
  // machine) waited for memory, since that began; negative where the system
  // does not tell.
  double memory_stall = -1;
  double cpu = 0;  // seconds of this process
};

ProcessSample sample_process();

class ProcessSampler {
 public:
  explicit ProcessSampler(double every_seconds = 0.02);
  ~ProcessSampler();
  ProcessSampler(const ProcessSampler&) = delete;
  ProcessSampler& operator=(const ProcessSampler&) = delete;

  // Ends it; the first and the last sample are those of its begin and now.
  std::vector<ProcessSample> stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::profile
