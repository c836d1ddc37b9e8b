#pragma once
// Whoever is told what the loop did, one JSON object a step and one an event:
// the run's files, and whatever a caller adds.
#include <cstdint>
#include <optional>

#include "hearth/base/json.h"

namespace hearth::train {

class MetricSink {
 public:
  virtual ~MetricSink() = default;

  // Before anything else. A run goes on after this step (-1: it starts): what
  // was told of later ones holds no more, nor do events beyond the first so
  // many (absent: all stay).
  virtual void begin(std::int64_t /*step*/, std::optional<long> /*events*/) {}
  // The same of steps alone, in the middle of a run that was rolled back.
  virtual void go_back(std::int64_t /*step*/) {}

  // A line of metrics.jsonl: "step", "loss", "lr" and what else there is.
  virtual void step(const Json& line) = 0;
  // A line of events.jsonl: "step", "event" and what it was.
  virtual void event(const Json& /*line*/) {}
};

}  // namespace hearth::train
