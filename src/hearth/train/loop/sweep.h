#pragma once
// A grid of runs: recipes that differ in some keys, what came of each, and the
// table and plot of it. Trains nothing itself.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/config.h"
#include "hearth/base/json.h"

namespace hearth::train {

// base: recipe.yaml
// grid: {optim.lr: [1e-3, 5e-4], model.gate.value: [0, 0.5, 1]}
struct SweepConfig {
  std::string base;
  YamlNode grid;

  void fields(FieldVisitor& v);
};

struct SweepRun {
  std::string name;  // of its values, fit for a folder
  // Key and value, as the sweep's file has them.
  std::vector<std::pair<std::string, std::string>> values;
};

// Every combination, the last key moving fastest. Throws UsageError when the
// grid is not a map of keys to lists, or is larger than 1,000 runs.
std::vector<SweepRun> expand(const SweepConfig& config);

struct SweepResult {
  SweepRun run;
  std::optional<double> valid_loss, train_loss, tokens_per_s;
  double seconds = 0;
  std::string error;  // why there is no result

  // The validation loss, or without a held-out split the training loss; nothing
  // when the run failed or its loss is not finite.
  std::optional<double> score() const;
};

// The run with the lowest score; nothing when none has one.
std::optional<std::size_t> best_of(const std::vector<SweepResult>& results);

Json to_json(const std::vector<SweepResult>& results);
// What to_json made of one run.
SweepResult result_from(const SweepRun& run, const Json& row);
std::string to_csv(const std::vector<SweepResult>& results);
std::string to_text(const std::vector<SweepResult>& results);
// A dot for each run on the scale of the loss, the best marked.
std::string to_svg(const std::vector<SweepResult>& results);

}  // namespace hearth::train
