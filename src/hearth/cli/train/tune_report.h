#pragma once
// What `hearth tune` found, as text and JSON.
#include <string>
#include <vector>

#include "hearth/train/plan/tuning.h"

namespace hearth::cli {

// One line of the table of before and after.
struct ComparedRow {
  std::string side;   // "before", "after"
  std::string batch;  // "equal", "best"
  train::TuneRow row;
  std::optional<double>
      speedup;  // of tokens/s, over "before" in the same batch
  std::optional<double> valid_loss;  // at equal tokens
};

struct TuneReport {
  train::TuneResult search;
  std::vector<ComparedRow> compared;
  std::uint64_t loss_tokens = 0;
  bool same_start = true;  // both sides are one recipe
  std::vector<std::string> notes;
  std::string output;  // the recipe's path; empty: not written
  bool interrupted = false;
};

std::string tune_head();
std::string tune_line(const train::TuneRow& row);
std::string tune_text(const TuneReport& report);
Json to_json(const TuneReport& report);
// The comment lines that a written recipe opens with.
std::string recipe_header(
    const TuneReport& report,
    const std::string& command,
    const std::string& machine
);

}  // namespace hearth::cli
