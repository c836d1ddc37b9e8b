#include "hearth/train/trainer.h"

#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/optim/clip.h"
#include "hearth/optim/schedule.h"
#include "hearth/train/accumulator.h"
#include "hearth/train/planner.h"
#include "hearth/train/validation.h"

namespace hearth::train {
namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch()
  )
      .count();
}

// Of a step that was not applied, written to events.jsonl.
constexpr std::size_t kKeptSamples = 256;

// Within what the planner has found to fit.
BatchPolicy make_policy(const Recipe& recipe, const TrainHooks& hooks) {
  const BatchChoice b = batch_choice(recipe);
  const auto within = [](std::int64_t rows, std::uint32_t planned) {
    const auto n = static_cast<std::uint32_t>(rows);
    return planned > 0 ? std::min(planned, n) : n;
  };
  return {
      within(b.rows, hooks.rows),
      within(b.pinned ? b.rows : b.all, hooks.most_rows), b.pinned
  };
}

// Steps of the run: as told, or so many that the epochs are through.
std::int64_t steps_of(const Session& s) {
  const auto& t = s.recipe.train;
  if (t.epochs <= 0) return t.steps;
  std::uint64_t tokens = 0;
  for (const auto& set : s.cache->sets(data::Split::kTrain)) {
    tokens += set.tokens();
  }
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(
             t.epochs * static_cast<double>(tokens) /
             static_cast<double>(s.recipe.step_tokens())
         ))
  );
}

}  // namespace

Json StepMetrics::to_json() const {
  Json j{
      {"step", step},
      {"tokens", tokens},
      {"loss", loss},
      {"lr", lr},
      {"grad_norm", grad_norm},
      {"tokens_per_s", tokens_per_s},
      {"peak_mib", static_cast<double>(memory) / (1 << 20)},
      {"stall_ms", stall_ms},
      {"micro_batch", rows},
      {"length", length}
  };
  if (share_of_peak) j["share_of_peak"] = *share_of_peak;
  if (valid_loss) j["valid_loss"] = *valid_loss;
  if (skipped) j["skipped"] = true;
  return j;
}

Trainer::Trainer(Session& session, RunDirectory& run, TrainHooks hooks)
    : session_(session),
      run_(run),
      hooks_(std::move(hooks)),
      optimizer_(
          optim::Optimizer::make(
              session.recipe.optim,
              session.model->parameters().trainable()
          )
      ),
      loader_(
          std::make_unique<data::Loader>(session.cache, session.train_loader())
      ),
      policy_(make_policy(session.recipe, hooks_)),
      health_(session.recipe.train.health),
      steps_(steps_of(session)) {}

void Trainer::note(const std::string& text) const {
  if (hooks_.note) hooks_.note(text);
}

bool Trainer::due(std::int64_t every) const {
  return every > 0 && step_ % every == 0;
}

double Trainer::learning_rate() const {
  return health_.lr_factor() *
         optim::learning_rate(session_.recipe.optim, step_, steps_);
}

void Trainer::set_gates(std::int64_t step) {
  for (nn::Gate* gate : session_.model->gates()) {
    gate->set_step(gate->config().step + step);
  }
}

StepMetrics Trainer::train_step() {
  const double start = now();
  const double stalled = loader_->stats().stall_seconds;
  if (!loader_->next(batch_))
    throw Error("the training data has no batch to give");
  reset_memory_peak();
  set_gates(step_);
  AccumulateOptions options;
  options.compute = session_.compute;
  options.eval_interval = static_cast<int>(session_.recipe.train.eval_interval);
  const Recipe& recipe = session_.recipe;
  const bool dropout = recipe.lora && recipe.lora->dropout > 0;
  if (dropout || recipe.train.neftune > 0) {
    options.noise = RandomKey(session_.recipe.run.seed)
                        .fold("noise")
                        .fold(static_cast<std::uint64_t>(step_));
  }
  bool shrunk = false;
  options.shrunk = [&](auto from, auto to, const std::string& why) {
    shrunk = true;
    note(
        fmt::format(
            "out of memory at {} rows, going on with {}: {}", from, to, why
        )
    );
  };
  std::uint32_t rows = policy_.rows();
  const Gradients g =
      accumulate(*session_.model, *session_.objective, batch_, rows, options);
  const double norm = optim::global_norm(g.arrays) / g.weight_sum;
  StepMetrics m;
  m.loss = g.loss_sum / g.weight_sum;
  m.lr = learning_rate();
  m.grad_norm = norm;
  m.rows = rows;
  m.length = batch_.length;
  m.skipped = !healthy(g, m.loss, norm);
  if (!m.skipped) apply(g, norm, m.lr);
  step_ += 1;
  tokens_ += batch_.tokens;
  m.memory = memory_usage().peak;
  peak_ = std::max(peak_, m.memory);
  // A short batch has fewer rows, too, and says nothing about memory.
  const std::uint32_t before = policy_.rows();
  policy_.update(shrunk ? rows : before, m.memory, memory_budget());
  // Arrays of other rows are of other sizes: those that are kept serve nobody.
  if (policy_.rows() != before) mx::clear_cache();
  m.step = step_, m.steps = steps_, m.tokens = tokens_;
  m.stall_ms = 1e3 * (loader_->stats().stall_seconds - stalled);
  if (!m.skipped) {
    smoothed_ = smoothed_ == 0 ? m.loss : 0.95 * smoothed_ + 0.05 * m.loss;
  }
  m.smoothed = smoothed_;
  note_speed(m, now() - start);
  return m;
}

void Trainer::note_speed(StepMetrics& m, double seconds) {
  m.tokens_per_s = static_cast<double>(batch_.tokens) / seconds;
  // The first step warms caches and thread pools.
  if (step_ > 1) {
    seconds_ += seconds;
    timed_tokens_ += static_cast<double>(batch_.tokens);
  }
  if (hooks_.peak_gflops > 0) {
    m.share_of_peak = m.tokens_per_s * session_.flops_per_token(batch_.length) /
                      (hooks_.peak_gflops * 1e9);
  }
}

bool Trainer::healthy(const Gradients& g, double mean_loss, double norm) {
  if (g.weight_sum <= 0) return false;
  const auto verdict = health_.judge(step_ + 1, mean_loss, norm);
  if (verdict.action == HealthAction::apply) return true;
  Json samples = Json::array();
  for (const auto& s : batch_.samples) {
    if (samples.size() == kKeptSamples) break;
    samples.push_back({s.source, s.document, s.begin, s.length});
  }
  events_->append(
      {{"step", step_ + 1},
       {"event", name_of(verdict.action)},
       {"why", verdict.reason},
       {"samples", samples}}
  );
  note("not applied: " + verdict.reason);
  if (verdict.action == HealthAction::roll_back) roll_back();
  if (verdict.action == HealthAction::stop) {
    throw Error(
        "training stopped: " + verdict.reason,
        "the samples are in " + run_.file("events.jsonl")
    );
  }
  return false;
}

void Trainer::apply(const Gradients& g, double norm, double lr) {
  const double scale =
      optim::clip_factor(norm, session_.recipe.optim.clip) / g.weight_sum;
  optimizer_->step(g.arrays, static_cast<float>(scale), lr);
}

void Trainer::roll_back() {
  const auto found = latest_valid(run_.path());
  if (!found.checkpoint) {
    note("there is no checkpoint to go back to; going on with a smaller rate");
    return;
  }
  const std::int64_t at = step_ + 1;
  const Json judged = health_.state();
  const Json drawn = loader_->state();
  restore(*found.checkpoint);
  health_.restore(judged);
  // The batches since then are not drawn again: they are what went wrong.
  loader_->restore(drawn);
  note(fmt::format("rolled back from step {} to {}", at, step_));
}

void Trainer::validate_now() {
  if (!session_.data.has_valid()) return;
  set_gates(step_);
  const Validation v = validate(session_, policy_.rows());
  valid_ = v.loss;
  if (v.loss < best_valid_) {
    best_valid_ = v.loss;
    best_step_ = step_;
    since_best_ = 0;
  } else {
    since_best_ += 1;
  }
}

void Trainer::save() {
  save_checkpoint(
      run_.path(),
      {.step = step_,
       .weights = weights_of(session_.model->parameters().trainable()),
       .optimizer = optimizer_->state(),
       .state = state()}
  );
  if (best_step_ == step_ && valid_) {
    set_best(run_.path(), {.step = step_, .loss = *valid_});
  }
  prune_checkpoints(run_.path(), static_cast<int>(session_.recipe.train.keep));
}

Json Trainer::state() const {
  Json j{
      {"step", step_},
      {"tokens", tokens_},
      {"loader", loader_->state()},
      {"policy", policy_.state()},
      {"health", health_.state()},
      {"smoothed", smoothed_},
      {"best_step", best_step_},
      {"since_best", since_best_}
  };
  if (valid_) j["valid"] = *valid_;
  if (std::isfinite(best_valid_)) j["best_valid"] = best_valid_;
  return j;
}

void Trainer::restore(const Checkpoint& checkpoint) {
  checkpoint.copy_weights(session_.model->parameters().trainable());
  const auto moments = checkpoint.optimizer_state();
  optimizer_->restore(moments);
  const Json& s = checkpoint.state();
  step_ = s.at("step").get<std::int64_t>();
  tokens_ = s.at("tokens").get<std::uint64_t>();
  loader_->restore(s.at("loader"));
  policy_.restore(s.at("policy"));
  health_.restore(s.at("health"));
  smoothed_ = s.at("smoothed").get<double>();
  best_step_ = s.at("best_step").get<std::int64_t>();
  since_best_ = s.at("since_best").get<std::int64_t>();
  valid_.reset();
  if (s.contains("valid")) valid_ = s["valid"].get<double>();
  best_valid_ = s.contains("best_valid")
                    ? s["best_valid"].get<double>()
                    : std::numeric_limits<double>::infinity();
}

bool Trainer::resume() {
  const auto found = latest_valid(run_.path());
  for (const auto& skipped : found.skipped) note(skipped);
  if (!found.checkpoint) return false;
  restore(*found.checkpoint);
  return true;
}

TrainResult Trainer::run() {
  const auto& t = session_.recipe.train;
  metrics_ = std::make_unique<MetricsLog>(run_.metrics_path(), step_);
  events_ = std::make_unique<MetricsLog>(run_.file("events.jsonl"), step_);
  bool early = false;
  while (step_ < steps_ && !early) {
    StepMetrics m = train_step();
    const bool last = step_ == steps_;
    const bool evaluated = last || due(t.eval_every);
    if (evaluated) {
      validate_now();
      m.valid_loss = valid_;
      early = t.early_stop > 0 && since_best_ >= t.early_stop;
    }
    metrics_->append(m.to_json());
    if (hooks_.on_step) hooks_.on_step(m);
    const bool stop = hooks_.stop && hooks_.stop();
    const bool improved = evaluated && best_step_ == step_ && valid_;
    if (last || early || stop || due(t.save_every) || improved) save();
    if (stop && !last) {
      throw Interrupted(
          fmt::format("interrupted after step {}; saved", step_),
          fmt::format("hearth train --resume {}", run_.path())
      );
    }
  }
  TrainResult r = result();
  r.stopped_early = early;
  return r;
}

void Trainer::restore_best() {
  const auto best = best_checkpoint(run_.path());
  set_gates(best ? best->step : step_);
  // Buffers kept for steps would stand beside the files.
  mx::clear_cache();
  if (!best || best->step == step_) return;
  Checkpoint::load(checkpoint_path(run_.path(), best->step))
      .copy_weights(session_.model->parameters().trainable());
}

TrainResult Trainer::result() const {
  TrainResult r;
  r.steps = step_, r.tokens = tokens_;
  r.train_loss = smoothed_;
  r.valid_loss = valid_;
  if (std::isfinite(best_valid_)) r.best_valid_loss = best_valid_;
  r.tokens_per_s = seconds_ > 0 ? timed_tokens_ / seconds_ : 0;
  if (hooks_.peak_gflops > 0 && r.tokens_per_s > 0) {
    r.share_of_peak = r.tokens_per_s *
                      session_.flops_per_token(session_.recipe.longest()) /
                      (hooks_.peak_gflops * 1e9);
  }
  r.peak_bytes = peak_;
  return r;
}

}  // namespace hearth::train
