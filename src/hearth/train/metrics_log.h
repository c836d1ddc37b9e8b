#pragma once
// metrics.jsonl: one JSON object a line, each with its step.
#include <string>

#include "hearth/base/file_handle.h"
#include "hearth/base/json.h"

namespace hearth::train {

class MetricsLog {
 public:
  // Appends to a file that holds the steps up to last_step of an earlier start:
  // later lines, and what is no whole line with a step, are cut. With -1 it
  // starts empty.
  MetricsLog(const std::string& path, long last_step);

  // Hands the line to the system whole, so that it outlives the process.
  // Throws UsageError when it has no integer "step".
  void append(const Json& line);

  // Lines that were cut.
  long dropped() const { return dropped_; }

 private:
  long dropped_ = 0;
  FileHandle file_;
};

}  // namespace hearth::train
