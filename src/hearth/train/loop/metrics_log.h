#pragma once
// metrics.jsonl and events.jsonl: one JSON object a line, each with its step.
#include <functional>
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
  // The same of the first so many lines, whatever their steps.
  static MetricsLog with_lines(const std::string& path, long lines);

  // Hands the line to the system whole, so that it outlives the process.
  // Throws UsageError when it has no integer "step".
  void append(const Json& line);

  // Lines that are there, and that were cut.
  long lines() const { return lines_; }
  long dropped() const { return dropped_; }

 private:
  MetricsLog() = default;
  // Cuts what does not stay and opens the file for more.
  void open(
      const std::string& path,
      const std::function<bool(long line, const Json& content)>& stays
  );

  long lines_ = 0, dropped_ = 0;
  FileHandle file_;
};

}  // namespace hearth::train
