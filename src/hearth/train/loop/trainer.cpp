#include "hearth/train/loop/trainer.h"

#include <cmath>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/shell_word.h"
#include "hearth/models/packed_cache.h"
#include "hearth/train/loop/run_log.h"
#include "hearth/train/loop/session_step.h"
#include "hearth/train/loop/validation.h"
#include "hearth/train/plan/planner.h"

namespace hearth::train {
namespace {

// Within what the planner has found to fit.
BatchPolicy make_policy(const Recipe& recipe, const TrainHooks& hooks) {
  const BatchChoice b = batch_choice(recipe);
  const auto within = [](std::int64_t rows, std::uint32_t planned) {
    const auto n = static_cast<std::uint32_t>(rows);
    return planned > 0 ? std::min(planned, n) : n;
  };
  return {
      within(b.rows, hooks.rows),
      within(b.pinned ? b.rows : b.all, hooks.most_rows), b.pinned,
      static_cast<std::uint32_t>(recipe.longest())
  };
}

// Names the model that is not trained and whose weights the run reads all the
// time: the one below adapters, or the start that an objective measures
// against. Empty where there is none, and the start is of no matter once a run
// has begun.
std::string base_name(const Session& s) {
  const bool read = s.recipe.lora || s.recipe.objective().needs.start_model;
  if (!s.base || !read) return {};
  return models::content_hash(*s.base, io::ReadMode::mapped).hex();
}

}  // namespace

LoopEnds loop_ends(const Session& session, const RunDirectory& run) {
  LoopEnds ends;
  ends.batches = session_batches(session);
  ends.sinks.push_back(std::make_unique<RunLog>(run));
  return ends;
}

Trainer::Trainer(
    Session& session,
    RunDirectory& run,
    TrainHooks hooks,
    LoopEnds ends
)
    : session_(session),
      run_(run),
      hooks_(std::move(hooks)),
      optimizer_(make_optimizer(session)),
      update_(make_step(session, *optimizer_)),
      ends_(std::move(ends)),
      policy_(make_policy(session.recipe, hooks_)),
      health_(session.recipe.train.health),
      base_(base_name(session)),
      steps_(count_steps()),
      saves_(session.recipe.train.save_every, steps_, seconds_now()) {}

// As told, or so many that the epochs are through, from where the data is.
std::int64_t Trainer::count_steps() const {
  const auto& t = session_.recipe.train;
  if (t.epochs <= 0) return t.steps;
  const auto left = ends_.batches->left();
  if (!left) {
    throw UsageError(
        "train.epochs must have batches that come to an end: give train.steps"
    );
  }
  const auto all = static_cast<std::uint64_t>(step_ + discarded_) + *left;
  const double share = t.epochs / std::ceil(t.epochs);
  const double steps = std::ceil(share * static_cast<double>(all) - 1e-9);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(steps));
}

void Trainer::note(const std::string& text) const {
  if (hooks_.note) hooks_.note(text);
}

void Trainer::warn(const std::string& text) {
  warnings_.push_back(text);
  if (hooks_.warn) return hooks_.warn(text);
  note(text);
}

// Epochs are counted by what was drawn, and what was rolled back was.
std::int64_t Trainer::end() const {
  return session_.recipe.train.epochs > 0 ? steps_ - discarded_ : steps_;
}

bool Trainer::early() const {
  const auto& t = session_.recipe.train;
  return t.early_stop > 0 && since_best_ >= t.early_stop;
}

void Trainer::interrupt() const {
  throw Interrupted(
      fmt::format("interrupted after step {}; saved", step_),
      fmt::format("hearth train --resume {}", shell_word(run_.path()))
  );
}

void Trainer::open_logs() {
  const std::int64_t last = unvalidated_.is_null() ? step_ : step_ - 1;
  for (const auto& sink : ends_.sinks) sink->begin(last, events_);
}

void Trainer::tell_step(const Json& line) {
  for (const auto& sink : ends_.sinks) sink->step(line);
}

void Trainer::tell_event(const Json& line) {
  for (const auto& sink : ends_.sinks) sink->event(line);
  if (events_) ++*events_;
}

void Trainer::validate_now(Json& line) {
  if (!session_.data.has_valid()) return;
  set_gates(*session_.model, step_);
  ValidationHooks hooks;
  hooks.stop = hooks_.stop;
  if (hooks_.on_validation) {
    hooks.progress = [&](double share) {
      hooks_.on_validation(share, step_, end());
    };
  }
  const auto longest = static_cast<std::uint32_t>(session_.recipe.longest());
  const std::uint32_t rows = policy_.rows(longest);
  update_->make_room_for(std::uint64_t{rows} * longest);
  const Validation v = validate(session_, rows, hooks);
  if (v.stopped) {
    tell_step(line);
    unvalidated_ = line;
    save();
    interrupt();
  }
  if (v.tokens == 0) {
    if (!std::exchange(told_nothing_scored_, true)) {
      note("no validation loss: no token of the held-out documents is scored");
    }
    return;
  }
  valid_ = v.loss;
  valid_means_ = v.means;
  line["valid_loss"] = v.loss;
  for (const auto& [name, mean] : v.means) line["valid_" + name] = mean;
  if (v.loss < best_valid_) {
    best_valid_ = v.loss;
    best_step_ = step_;
    since_best_ = 0;
  } else {
    since_best_ += 1;
  }
}

// What an interruption has left undone.
void Trainer::validate_late() {
  if (unvalidated_.is_null()) return;
  Json line = std::exchange(unvalidated_, nullptr);
  validate_now(line);
  tell_step(line);
  save();
}

void Trainer::after_step(StepMetrics& m) {
  const auto& t = session_.recipe.train;
  const bool last = step_ == end();
  const bool evaluated =
      last || (t.eval_every > 0 && step_ % t.eval_every == 0);
  Json line = m.to_json();
  if (evaluated) {
    validate_now(line);
    m.valid_loss = valid_;
    m.valid_means = valid_means_;
  }
  tell_step(line);
  if (hooks_.on_step) hooks_.on_step(m);
  const bool stop = stop_asked();
  const bool ends = last || early();
  const bool improved = evaluated && best_step_ == step_ && valid_;
  // Weights that steps are skipped on may be what is wrong.
  const bool due = health_.trouble() == 0 && saves_.due(step_, seconds_now());
  // What is saved must be of this step, so those sent after it come first.
  if (!sent_.empty()) {
    draining_ = draining_ || stop || due;
    return;
  }
  if (ends || stop || improved || due) save();
  if (stop && !ends) interrupt();
}

TrainResult Trainer::run() {
  open_logs();
  settle_best();
  validate_late();
  while (step_ < end() && !early()) {
    StepMetrics m = train_step();
    if (verdict_.action == HealthAction::stop) give_up();
    if (verdict_.action != HealthAction::roll_back) {
      after_step(m);
      continue;
    }
    roll_back();
    if (stop_asked()) interrupt();
  }
  return result();
}

TrainResult Trainer::result() const {
  TrainResult r;
  r.steps = step_, r.tokens = tokens_;
  r.train_loss = smoothed_;
  r.valid_loss = valid_;
  r.valid_means = valid_means_;
  if (std::isfinite(best_valid_)) {
    r.best_valid_loss = best_valid_;
    r.best_step = best_step_;
  }
  if (seconds_ > 0) r.tokens_per_s = timed_tokens_ / seconds_;
  if (made_ == 1) r.tokens_per_s = first_rate_;
  if (hooks_.peak_gflops > 0 && r.tokens_per_s) {
    r.share_of_peak = *r.tokens_per_s *
                      session_.flops_per_token(session_.recipe.longest()) /
                      (hooks_.peak_gflops * 1e9);
  }
  r.peak_bytes = peak_;
  r.stopped_early = step_ < end() && early();
  if (valid_ && !std::isfinite(*valid_)) {
    r.diverged =
        fmt::format("the validation loss after step {} is not finite", step_);
  } else if (!valid_ && loss_ && !std::isfinite(*loss_)) {
    r.diverged = fmt::format("the loss of step {} is not finite", step_);
  }
  return r;
}

}  // namespace hearth::train
