#pragma once
// Makes a few steps of a session to measure them: the loop's own step, on a
// device sent ahead as the loop does, with nothing kept, judged or saved.
#include <cstdint>
#include <functional>
#include <vector>

#include "hearth/train/loop/session.h"

namespace hearth::train {

struct TrialOptions {
  std::uint32_t rows = 1;          // of a micro-batch, of the longest length
  std::uint64_t batch_tokens = 0;  // of an update; 0: as the recipe has it
  // Ends after so many tokens (padding is none), or so many updates when
  // tokens is 0.
  std::uint64_t tokens = 0;
  int steps = 3;
  double seconds = 0;  // timed for at least so long; of steps, not of tokens
  int warm_up = 1;     // updates that are not timed
  // In place of the session's; it must outlive the trial.
  const Objective* objective = nullptr;
  std::function<bool()> stop;  // asked after each update
  // Told after each update how many tokens were trained on.
  std::function<void(std::uint64_t)> progress;
};

struct TrialResult {
  // Of each timed update.
  std::vector<double> gradient_seconds, update_seconds;
  // Tokens a second of each timed update, waiting for data included.
  std::vector<double> rates;
  double timed_seconds = 0;
  double stall_seconds = 0;
  std::uint64_t tokens = 0;
  std::int64_t steps = 0;
  double train_loss = 0;   // of the last update
  std::size_t peak = 0;    // bytes resident; without the system's help, charged
  std::uint32_t rows = 0;  // fewer than asked where memory ran out
  bool stopped = false;
};

// The rate follows the recipe's schedule by tokens seen. Throws OutOfMemory
// when not even one row fits.
TrialResult run_trial(Session& session, const TrialOptions& options);

}  // namespace hearth::train
