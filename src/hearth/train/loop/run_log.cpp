#include "hearth/train/loop/run_log.h"

#include <limits>

namespace hearth::train {

RunLog::RunLog(const RunDirectory& run)
    : metrics_path_(run.metrics_path()),
      events_path_(run.file("events.jsonl")) {}

void RunLog::begin(std::int64_t step, std::optional<long> events) {
  go_back(step);
  const long all = std::numeric_limits<long>::max();
  events_ = std::make_unique<MetricsLog>(
      MetricsLog::with_lines(events_path_, events.value_or(all))
  );
}

void RunLog::go_back(std::int64_t step) {
  metrics_ = std::make_unique<MetricsLog>(metrics_path_, step);
}

}  // namespace hearth::train
