#pragma once
// The search for the fastest way to run a recipe's step: which settings are
// tried in which order, and which one wins. It asks for measurements; how they
// are made is the caller's business.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::train {

struct Setting {
  std::int64_t rows = 1;  // of a micro-batch
  std::string checkpointing = "none";
  std::string precision = "bf16";
  int threads = 1;

  bool operator==(const Setting&) const = default;
};

enum class TuneOutcome : unsigned char {
  measured,
  too_large,      // predicted to pass the budget: not run
  out_of_memory,  // passed the budget while it ran, which was caught
};

struct TuneRow {
  Setting setting;
  TuneOutcome outcome = TuneOutcome::measured;
  double step_seconds = 0, spread = 0;
  double tokens_per_s = 0, samples_per_s = 0;
  std::optional<double> share_of_peak;
  std::size_t peak = 0, predicted = 0;  // bytes
};

struct TuneSpace {
  std::int64_t step_rows = 1;   // of an update
  std::int64_t least_rows = 1;  // where the ladder of rows begins
  std::int64_t floor_rows = 1;  // how far down it goes where that does not fit
  std::int64_t own_rows = 0;    // the recipe's, tried before all; 0: none
  // The first of each is where the search starts.
  std::vector<std::string> precisions, policies;
  std::vector<int> threads;
};

struct TuneCalls {
  // Bytes; above the budget the setting is not run.
  std::function<std::size_t(const Setting&)> predict;
  std::size_t budget = 0;  // 0: none
  // Fills all but setting and predicted.
  std::function<TuneRow(const Setting&)> measure;
  std::function<void(const TuneRow&)> on_row;
  // Asked before each measurement: true ends the search.
  std::function<bool()> stop;
};

struct TuneResult {
  std::vector<TuneRow> rows;
  std::optional<std::size_t> best;
  bool complete = true;  // false when it was told to stop
};

// Rows are doubled until memory ends or two sizes in a row gain nothing, or
// halved until they fit; then, at the fastest, blocks computed again (with more
// rows where memory had ended), the other precisions, and fewer threads.
TuneResult tune(const TuneSpace& space, const TuneCalls& calls);

// The fastest; of those within 1 % of it the one with least memory.
std::optional<std::size_t> fastest(const std::vector<TuneRow>& rows);

const char* name_of(TuneOutcome outcome);
std::string describe(const Setting& setting);
// As every measured table has it: case, threads, median_ms, rate, unit, ...
Json to_json(const TuneRow& row);

}  // namespace hearth::train
