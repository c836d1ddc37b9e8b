#pragma once
// What each technique of training is worth: the same recipe with one of them
// switched at a time, trained on the same number of tokens. Time, memory, and
// the validation loss they led to.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/train/loop/session.h"
#include "hearth/train/objectives/language_model.h"

namespace hearth::bench {

struct Ablation {
  std::string what, setting;  // "fused attention", "off"
  std::function<void(train::Recipe&)> change;
  train::LanguageModelOptions objective;
};
// The recipe as it is comes first, then the same with another seed, whose
// difference in loss is noise; then one row for each switch.
std::vector<Ablation> ablations(const train::Recipe& recipe);

// A small model on synthetic stories that takes seconds a row.
train::Recipe ablation_recipe();

struct AblationRow {
  std::string what, setting, isa;
  int threads = 1;
  std::int64_t steps = 0;
  std::uint64_t tokens = 0;
  double median_ms = 0, spread = 0;  // of an update
  double tokens_per_s = 0;           // padding is none
  double stall_share = 0;            // of the time, waiting for data
  std::size_t peak = 0;
  std::optional<double> valid_loss;
  bool complete = true;  // false: stopped before the tokens were through
};

struct AblateOptions {
  std::uint64_t tokens = 0;
  train::PrepareData prepare;
  std::function<bool()> stop;
};
AblationRow run_ablation(
    const train::Recipe& recipe,
    const Ablation& ablation,
    const AblateOptions& options
);

// Against the first row: how much faster that one is, and how much less memory
// it has.
Json to_json(const AblationRow& row, const AblationRow& base);
std::string ablation_head();
std::string ablation_line(const AblationRow& row, const AblationRow& base);

}  // namespace hearth::bench
