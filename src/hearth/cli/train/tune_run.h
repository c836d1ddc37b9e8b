#pragma once
// One run of `hearth tune`: the search for the fastest settings (for a preset,
// of the largest model that is fast enough), then the comparison with the
// settings before.
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
  // What is searched over: some of batch, checkpointing, precision, threads.
  // Empty: all of them.
  std::vector<std::string> over;
  bool table_on_stderr = false;  // because stdout takes the recipe
};

// Throws UsageError for an unknown word in `over`.
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
  // Compares the best settings with those of `against`, or, without it, with
  // basic settings: float32, no activation checkpointing.
  void compare(const std::optional<train::Recipe>& against);

  train::Recipe best_recipe() const;
  TuneReport& report() { return report_; }
  const TuneReport& report() const { return report_; }

  std::function<void()> on_row;  // after each measurement

 private:
  const Context& context_;
  TuneLimits limits_;
  double start_;  // by seconds_now()
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
  std::pair<train::TuneRow, train::TuneRow> alternately(
      TuneSide& before,
      const train::Setting& before_setting,
      const train::Setting& after_setting
  );
  void compare_cpu(const train::TuneRow& after);
  void compare_loss(TuneSide& before, const train::Setting& setting);
};

}  // namespace hearth::cli
