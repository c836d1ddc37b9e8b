#pragma once
// An answer under way, whatever it is made of.

namespace hearth::serve {

class RunningJob {
 public:
  RunningJob() = default;
  virtual ~RunningJob() = default;
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  // Ends the answer with an error that says the server stops.
  virtual void cut_off() = 0;
};

}  // namespace hearth::serve
