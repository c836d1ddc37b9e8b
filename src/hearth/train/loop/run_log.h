#pragma once
// A run's own sink: metrics.jsonl and events.jsonl in its folder.
#include <memory>
#include <string>

#include "hearth/train/loop/metric_sink.h"
#include "hearth/train/loop/metrics_log.h"
#include "hearth/train/loop/run_directory.h"

namespace hearth::train {

class RunLog : public MetricSink {
 public:
  explicit RunLog(const RunDirectory& run);

  void begin(std::int64_t step, std::optional<long> events) override;
  void go_back(std::int64_t step) override;
  void step(const Json& line) override { metrics_->append(line); }
  void event(const Json& line) override { events_->append(line); }

 private:
  std::string metrics_path_, events_path_;
  std::unique_ptr<MetricsLog> metrics_, events_;
};

}  // namespace hearth::train
