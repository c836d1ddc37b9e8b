// What the loop writes down and goes back to: checkpoints, the best of them,
// roll-backs.
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/shell_word.h"
#include "hearth/train/loop/session_step.h"
#include "hearth/train/loop/trainer.h"
#include "hearth/train/loop/validation.h"

namespace hearth::train {
namespace {

// JSON has no word for nan and infinity.
Json number_json(double v) {
  return std::isfinite(v) ? Json(v) : Json(std::isnan(v) ? "nan" : "inf");
}

std::optional<double> number_at(const Json& state, const char* key) {
  const auto at = state.find(key);
  if (at == state.end() || at->is_null()) return {};
  if (!at->is_string()) return at->get<double>();
  return *at == "nan" ? std::numeric_limits<double>::quiet_NaN()
                      : std::numeric_limits<double>::infinity();
}

// Checkpoints from before metrics had names have one, the accuracy of pairs.
NamedValues means_at(const Json& state) {
  if (state.contains("valid_means")) return state["valid_means"];
  NamedValues means;
  if (const auto accuracy = number_at(state, "accuracy")) {
    means["accuracy"] = *accuracy;
  }
  return means;
}

// How many events a run had been told of; old checkpoints do not say.
std::optional<long> events_at(const Json& state) {
  const auto at = state.find("events");
  if (at == state.end() || !at->is_number_integer()) return {};
  return at->get<long>();
}

// The keys of a recipe that a measure goes by.
std::vector<std::string> measured_by(const Json& measure) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : measure.items()) {
    keys.push_back("train." + (key == "tokens" ? "eval_tokens" : key));
  }
  return keys;
}

// What says how an update is cut into micro-batches.
Json cut_of(const Recipe& recipe) {
  const TrainSection& t = recipe.train;
  return {
      {"micro_batch_size", t.micro_batch_size},
      {"gradient_accumulation_steps", t.gradient_accumulation_steps},
      {"dynamic_batch", t.dynamic_batch},
      {"memory", t.memory},
      {"precision", t.precision},
      {"checkpointing", t.checkpointing},
      {"packed", t.packed}
  };
}

bool is_whole(const std::string& checkpoint) {
  try {
    Checkpoint::load(checkpoint);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void Trainer::save() {
  const double start = seconds_now();
  save_checkpoint(
      run_.path(),
      {.step = step_,
       .weights = weights_of(session_.model->parameters().trainable()),
       .optimizer = optimizer_->state(),
       .state = state()}
  );
  const bool best = std::isfinite(best_valid_);
  if (best && best_step_ == step_) {
    set_best(run_.path(), {.step = step_, .loss = best_valid_});
  }
  const long trouble = health_.first_trouble();
  const long settled = trouble > 0 ? trouble - 1 : step_;
  prune_checkpoints(
      run_.path(), {.last = static_cast<int>(session_.recipe.train.keep),
                    .best = best ? best_step_ : -1,
                    .settled = std::max<long>(settled, proven_ + kProvingSteps)}
  );
  const double now = seconds_now();
  saves_.saved(step_, now, now - start);
}

Json Trainer::state() const {
  Json j{
      {"step", step_},
      {"tokens", tokens_},
      {"loader", ends_.batches->state()},
      {"policy", policy_.state()},
      {"cut", cut_of(session_.recipe)},
      {"health", health_.state()},
      {"discarded", discarded_},
      {"proven", proven_},
      {"best_step", best_step_},
      {"since_best", since_best_},
      {"measure", measured_}
  };
  if (events_) j["events"] = *events_;
  if (!base_.empty()) j["base"] = base_;
  // For those who read the weights: the model it began with may have stood
  // anywhere.
  const auto gates = session_.model->gates();
  if (!gates.empty()) {
    j["gate_step"] = gates.front()->config().step + step_;
  }
  if (scales_loss()) j["loss_scale"] = update_->loss_scale().state();
  if (loss_) j["loss"] = number_json(*loss_);
  if (smoothed_) j["smoothed"] = *smoothed_;
  if (valid_) j["valid"] = number_json(*valid_);
  if (!valid_means_.empty()) j["valid_means"] = valid_means_;
  if (std::isfinite(best_valid_)) j["best_valid"] = best_valid_;
  if (!unvalidated_.is_null()) j["unvalidated"] = unvalidated_;
  return j;
}

void Trainer::restore(const Checkpoint& checkpoint) {
  const Json& s = checkpoint.state();
  try {
    checkpoint.copy_weights(session_.model->parameters().trainable());
    checkpoint.copy_optimizer(*optimizer_);
    update_->weights_changed();
    ends_.batches->restore(s.at("loader"));
    restore_cut(s);
    health_.restore(s.at("health"));
    if (scales_loss() && s.contains("loss_scale")) {
      update_->loss_scale().restore(s["loss_scale"]);
    }
    step_ = s.at("step").get<std::int64_t>();
    tokens_ = s.at("tokens").get<std::uint64_t>();
    discarded_ = s.value("discarded", std::int64_t{0});
    proven_ = s.value("proven", std::int64_t{-1});
    best_step_ = s.at("best_step").get<std::int64_t>();
    since_best_ = s.at("since_best").get<std::int64_t>();
    measured_ = s.value("measure", Json());
    loss_ = number_at(s, "loss");
    smoothed_ = number_at(s, "smoothed");
    valid_ = number_at(s, "valid");
    valid_means_ = means_at(s);
    best_valid_ = number_at(s, "best_valid")
                      .value_or(std::numeric_limits<double>::infinity());
    unvalidated_ = s.value("unvalidated", Json());
  } catch (const Json::exception& e) {
    throw FormatError(
        fmt::format(
            "{}/state.json: no state of this kind: {}", checkpoint.path(),
            e.what()
        )
    );
  }
}

// A run that goes on as it was goes on with its micro-batches, so that it ends
// in the same bytes; one that is cut in another way from here on begins with
// what the plan says.
void Trainer::restore_cut(const Json& state) {
  const Json& policy = state.at("policy");
  if (state.value("cut", Json()) == cut_of(session_.recipe) ||
      !state.contains("cut")) {
    return policy_.restore(policy);
  }
  policy_.take_over(policy, state.at("step").get<std::int64_t>());
  const auto longest = static_cast<std::uint32_t>(session_.recipe.longest());
  note(
      fmt::format(
          "updates are cut anew: {} rows of {} tokens at a time",
          policy_.rows(longest), longest
      )
  );
}

// Adapters are trained to go with the weights below them, and losses of a
// preference compare with those of its start. A checkpoint without the name is
// from before there was one.
void Trainer::check_base(const Checkpoint& checkpoint) const {
  const auto then = checkpoint.state().find("base");
  if (then == checkpoint.state().end() || *then == base_) return;
  throw UsageError(
      fmt::format(
          "model.from must be the base that the run began with, got {}, whose "
          "weights or config are others",
          session_.recipe.model.from
      ),
      "it may lie elsewhere, with the same bytes; a new run (-o) may begin "
      "with another"
  );
}

void Trainer::settle_best() {
  const bool known = std::isfinite(best_valid_);
  const Json measure = validation_measure(session_);
  const bool same = measured_.is_null() || measured_ == measure;
  // A run that is through has nothing to compare any more.
  if (known && !same && step_ < end()) {
    forget_best(
        fmt::format(
            "{} makes validation losses others than before",
            fmt::join(measured_by(measure), " or ")
        )
    );
  }
  if (!std::isfinite(best_valid_)) {
    measured_ = measure;
    best_step_ = since_best_ = 0;
    return clear_best(run_.path());
  }
  if (same) measured_ = measure;
  // The one that it goes on from was just read.
  const std::string path = checkpoint_path(run_.path(), best_step_);
  const bool there = std::filesystem::exists(path);
  if (there && (best_step_ == step_ || is_whole(path))) {
    return set_best(run_.path(), {.step = best_step_, .loss = best_valid_});
  }
  forget_best(
      fmt::format(
          "the best checkpoint, of step {}, cannot be read any more", best_step_
      )
  );
  clear_best(run_.path());
}

void Trainer::forget_best(const std::string& why) {
  warn(why + ": the best is looked for anew");
  best_valid_ = std::numeric_limits<double>::infinity();
  best_step_ = since_best_ = 0;
}

bool Trainer::resume() {
  clear_leftovers(run_.path());
  const auto found = latest_valid(run_.path());
  for (const auto& skipped : found.skipped) warn(skipped);
  if (!found.checkpoint) {
    if (found.skipped.empty() && !run_.has_model()) return false;
    throw Error(
        fmt::format(
            "none of the checkpoints of {} is {}", run_.path(),
            found.skipped.empty() ? "there any more" : "whole"
        ),
        fmt::format(
            "hearth train {} -o {} --force starts it anew",
            shell_word(run_.file("config.yaml")), shell_word(run_.path())
        )
    );
  }
  check_base(*found.checkpoint);
  restore(*found.checkpoint);
  events_ = events_at(found.checkpoint->state());
  steps_ = count_steps();
  if (step_ > end()) {
    throw UsageError(
        fmt::format(
            "{} must reach the {} steps that the run has made, got {}",
            session_.recipe.train.epochs > 0 ? "train.epochs" : "train.steps",
            step_, end()
        )
    );
  }
  if (health_.lr_factor() < 1) {
    note(
        fmt::format(
            "the rate is {:.3g} of the schedule's since a roll-back",
            health_.lr_factor()
        )
    );
  }
  return true;
}

// The newest that enough good steps had followed; else one that any had.
LatestCheckpoint Trainer::before_trouble() {
  LatestCheckpoint found;
  const long first_bad = verdict_.since;
  const long healthy = std::max<long>(first_bad - 1 - kProvingSteps, proven_);
  for (const long most : {healthy, first_bad - 2}) {
    found = latest_valid(run_.path(), most);
    if (found.checkpoint) break;
  }
  for (const auto& skipped : found.skipped) warn(skipped);
  return found;
}

void Trainer::roll_back() {
  const std::int64_t at = step_;
  const std::int64_t drawn = step_ + discarded_ + std::ssize(sent_);
  drop_sent();
  const auto found = before_trouble();
  if (!found.checkpoint && !found.skipped.empty()) {
    throw Error(
        fmt::format(
            "training stopped: no checkpoint from before step {} is whole",
            verdict_.since
        ),
        "the samples are in " + run_.file("events.jsonl")
    );
  }
  const Health judged = health_;
  const Json position = ends_.batches->state();
  const Json cut = policy_.state();
  if (found.checkpoint) {
    restore(*found.checkpoint);
  } else {
    start_anew();
  }
  health_.rolled_back_from(judged);
  policy_.restore(cut);
  // The batches since then are not drawn again: they are what went wrong.
  ends_.batches->restore(position);
  discarded_ = drawn - step_;
  proven_ = step_;
  remove_checkpoints_after(run_.path(), step_);
  settle_best();
  for (const auto& sink : ends_.sinks) sink->go_back(step_);
  save();
  warn(
      fmt::format(
          "rolled back from step {} to {}{}", at, step_,
          step_ == 0 ? ", the first weights" : ""
      )
  );
  if (step_ >= end()) {
    throw Error(
        "training stopped: the epochs are through with the batches that were "
        "rolled back",
        "the samples are in " + run_.file("events.jsonl")
    );
  }
}

void Trainer::start_anew() {
  const optim::LossScale scale = update_->loss_scale();
  update_.reset();
  optimizer_.reset();
  start_model(session_);
  optimizer_ = make_optimizer(session_);
  update_ = make_step(session_, *optimizer_);
  update_->loss_scale() = scale;
  health_ = Health(session_.recipe.train.health);
  step_ = 0;
  tokens_ = 0;
  loss_.reset(), smoothed_.reset(), valid_.reset(), valid_means_.clear();
  best_valid_ = std::numeric_limits<double>::infinity();
  best_step_ = since_best_ = 0;
}

void Trainer::give_up() {
  std::string hint = "the samples are in " + run_.file("events.jsonl");
  const std::string reason = verdict_.reason;
  drop_sent();
  if (const auto found = before_trouble(); found.checkpoint) {
    restore(*found.checkpoint);
    remove_checkpoints_after(run_.path(), step_);
    settle_best();
    save();  // with what events.jsonl holds by now
    hint += fmt::format(
        "; hearth train --resume {} optim.lr=... goes on from step {}",
        shell_word(run_.path()), step_
    );
  }
  throw Error("training stopped: " + reason, hint);
}

bool Trainer::restore_best() {
  const bool known = std::isfinite(best_valid_);
  set_gates(*session_.model, known ? best_step_ : step_);
  // Buffers kept for steps would stand beside the files.
  mx::clear_cache();
  if (!known || best_step_ == step_) return true;
  try {
    Checkpoint::load(checkpoint_path(run_.path(), best_step_))
        .copy_weights(session_.model->parameters().trainable());
    return true;
  } catch (const Error& e) {
    set_gates(*session_.model, step_);
    clear_best(run_.path());
    warn(
        fmt::format(
            "the best checkpoint cannot be read, so the model is that of step "
            "{}: {}",
            step_, e.what()
        )
    );
    return false;
  }
}

}  // namespace hearth::train
