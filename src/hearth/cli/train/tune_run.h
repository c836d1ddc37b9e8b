#pragma once
// The course of `hearth tune`: a search, for a preset with a step down where
// the measurement says so, and the comparison of before and after.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hearth/cli/train/tune_report.h"
#include "hearth/cli/train/tune_side.h"
#include "hearth/train/plan/presets.h"

namespace hearth::cli {

struct TuneLimits {
  double seconds = 300;
  // Of batch, checkpointing, precision, threads; empty: all.
  std::vector<std::string> over;
  bool table_on_stderr = false;  // stdout is the recipe's
};

// Throws UsageError for a word of `over` that is none.
void check(const TuneLimits& limits);

class TuneRun {
 public:
  TuneRun(
      const Context& context,
      const train::Recipe& recipe,
      const TuneLimits& limits
  );

  void search();
  void search_preset(const train::Preset& preset);
  // Against basic settings (float32, nothing computed again), or a recipe.
  void compare(const std::optional<train::Recipe>& against);

  train::Recipe best_recipe() const;
  TuneReport& report() { return report_; }
  const TuneReport& report() const { return report_; }

  std::function<void()> on_row;  // after each measurement

 private:
  const Context& context_;
  TuneLimits limits_;
  std::chrono::steady_clock::time_point start_;
  std::unique_ptr<TuneSide> side_;
  TuneReport report_;

  void show(std::string line) const;
  double spent() const;
  bool stopped(double share) const;
  bool wanted(const char* what) const;
  train::TuneSpace space() const;
  train::TuneResult run_search(
      TuneSide& side,
      const train::TuneSpace& space,
      double share
  );
  static train::TuneRow measured(TuneSide& side, const train::Setting& setting);
  std::pair<train::TuneRow, train::TuneRow> in_turns(
      TuneSide& before,
      const train::Setting& before_setting,
      const train::Setting& after_setting
  );
  void compare_cpu(const train::TuneRow& after);
  void compare_loss(TuneSide& before, const train::Setting& setting);
};

}  // namespace hearth::cli
