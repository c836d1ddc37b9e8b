#pragma once
// One side of the comparison that `hearth tune` makes: a recipe on a device,
// whose settings are measured one after another. The session, with its model,
// stays open from one setting to the next where that is possible.
#include <functional>
#include <memory>
#include <string>

#include "hearth/cli/command.h"
#include "hearth/train/loop/session.h"
#include "hearth/train/plan/planner.h"
#include "hearth/train/plan/tuning.h"

namespace hearth::cli {

class TuneSide {
 public:
  // Measurements may take as much memory as the machine's budget allows.
  TuneSide(const Context& context, train::Recipe recipe);
  ~TuneSide();

  const train::Recipe& recipe() const { return recipe_; }
  const train::PlanMachine& machine() const { return machine_; }
  std::int64_t step_rows() const;

  std::size_t predict(const train::Setting& setting) const;
  // Runs two micro-batches of an update and the optimiser, and computes from
  // that what a whole update takes. Throws Interrupted after Ctrl-C.
  train::TuneRow measure(const train::Setting& setting);
  // Held-out loss after training on so many tokens from the start, with a
  // progress line; nothing without held-out data. Throws Interrupted.
  std::optional<double> valid_loss(
      const train::Setting& setting,
      std::uint64_t tokens
  );
  // Frees the model.
  void close();

 private:
  const Context& context_;
  train::Recipe recipe_;
  train::PlannedModel model_;
  train::PlanMachine machine_;
  std::unique_ptr<train::Session> session_;

  train::Session& session_for(const train::Setting& setting);
  train::Recipe settled(const train::Setting& setting) const;
  std::size_t bytes_of(const train::Recipe& recipe, int threads) const;
};

// The recipe with the setting's values.
train::Recipe apply_setting(
    const train::Recipe& recipe,
    const train::Setting& setting
);

}  // namespace hearth::cli
