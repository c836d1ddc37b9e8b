// One step of the loop: gradients, judgement, update, what it took.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/optim/clip.h"
#include "hearth/optim/schedule.h"
#include "hearth/train/loop/trainer.h"
#include "hearth/train/loop/trainer_impl.h"
#include "hearth/train/step/accumulator.h"

namespace hearth::train {
namespace {

// Of a step that was not applied, written to events.jsonl.
constexpr std::size_t kKeptSamples = 256;

std::optional<RandomKey> noise_of(const Recipe& recipe, std::int64_t step) {
  const bool dropout = recipe.lora && recipe.lora->dropout > 0;
  if (!dropout && recipe.train.neftune <= 0) return {};
  return RandomKey(recipe.run.seed)
      .fold("noise")
      .fold(static_cast<std::uint64_t>(step));
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
  if (valid_accuracy) j["valid_accuracy"] = *valid_accuracy;
  if (loss_scale) j["loss_scale"] = *loss_scale;
  if (skipped) j["skipped"] = true;
  return j;
}

// Arrays of other numbers of tokens are of other sizes: those that are kept
// serve nobody and would stay beside the new ones.
void Trainer::make_room_for(std::uint64_t tokens) {
  if (std::exchange(kept_tokens_, tokens) != tokens) mx::clear_cache();
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
  const double start = seconds_now();
  const double stalled = loader_->stats().stall_seconds;
  if (!loader_->next(batch_))
    throw Error("the training data has no batch to give");
  reset_memory_peak();
  mx::reset_peak_memory();
  set_gates(step_);
  AccumulateOptions options;
  options.compute = session_.compute;
  options.eval_interval = static_cast<int>(session_.recipe.train.eval_interval);
  options.noise = noise_of(session_.recipe, step_);
  options.loss_scale = loss_scale_.scale();
  bool shrunk = false;
  options.shrunk = [&](auto from, auto to, const std::string& why) {
    shrunk = true;
    warn(
        fmt::format(
            "out of memory at {} rows, going on with {}: {}", from, to, why
        )
    );
  };
  std::uint32_t rows = std::min(policy_.rows(batch_.length), batch_.rows);
  make_room_for(std::uint64_t{rows} * batch_.length);
  const Gradients g =
      accumulate(*session_.model, *session_.objective, batch_, rows, options);
  const double scaled = g.weight_sum * loss_scale_.scale();
  const double norm = optim::global_norm(g.arrays) / scaled;
  StepMetrics m;
  if (scales_loss()) m.loss_scale = scale_of_mean();
  m.loss = g.loss_sum / g.weight_sum;
  m.lr = learning_rate();
  m.grad_norm = norm;
  m.rows = rows;
  m.length = batch_.length;
  m.skipped = !healthy(g, m.loss, norm);
  if (!m.skipped) apply(g, scaled, norm, m.lr);
  step_ += 1;
  tokens_ += batch_.tokens;
  m.memory = peak_of_step();
  peak_ = std::max(peak_, m.memory);
  // A short batch has fewer rows, too, and says nothing about memory.
  const std::uint64_t left = std::uint64_t{rows} * batch_.length;
  policy_.update(
      shrunk ? left : policy_.tokens(), m.memory, memory_budget(), step_
  );
  m.step = step_, m.steps = end(), m.tokens = tokens_;
  m.stall_ms = 1e3 * (loader_->stats().stall_seconds - stalled);
  if (g.weight_sum > 0) loss_ = m.loss;
  if (!m.skipped) {
    smoothed_ = smoothed_ ? 0.95 * *smoothed_ + 0.05 * m.loss : m.loss;
  }
  m.smoothed = smoothed_;
  note_speed(m, seconds_now() - start);
  return m;
}

void Trainer::note_speed(StepMetrics& m, double seconds) {
  m.tokens_per_s = static_cast<double>(batch_.tokens) / seconds;
  // The first step warms caches and thread pools.
  if (++made_ == 1) {
    first_rate_ = m.tokens_per_s;
  } else {
    seconds_ += seconds;
    timed_tokens_ += static_cast<double>(batch_.tokens);
  }
  if (hooks_.peak_gflops > 0) {
    m.share_of_peak = m.tokens_per_s * session_.flops_per_token(batch_.length) /
                      (hooks_.peak_gflops * 1e9);
  }
}

double Trainer::scale_of_mean() const {
  return loss_scale_.scale() *
         static_cast<double>(session_.recipe.step_tokens());
}

// MLX's own ops do not ask before they take memory, so that what they took is
// seen only in its own peak.
std::size_t Trainer::peak_of_step() const {
  const MemoryUsage usage = memory_usage();
  if (!scales_loss()) return usage.peak;
  return std::max(usage.peak, usage.own + mx::get_peak_memory());
}

bool Trainer::overflowed(double mean_loss, double norm) {
  if (!std::isfinite(mean_loss)) return false;
  const double before = loss_scale_.scale();
  if (loss_scale_.update(std::isfinite(norm))) return false;
  if (loss_scale_.scale() == before) return false;
  const double now = scale_of_mean();
  events_->append({{"step", step_ + 1}, {"event", "overflow"}, {"scale", now}});
  warn(
      fmt::format(
          "not applied: gradients of step {} are beyond float16, the loss is "
          "scaled by {:g} from here on",
          step_ + 1, now
      )
  );
  return true;
}

bool Trainer::healthy(const Gradients& g, double mean_loss, double norm) {
  verdict_ = {HealthAction::skip, {}, 0};
  if (g.weight_sum <= 0 || overflowed(mean_loss, norm)) return false;
  verdict_ = health_.judge(step_ + 1, mean_loss, norm, batch_.length);
  if (verdict_.action == HealthAction::apply) return true;
  Json samples = Json::array();
  for (const auto& s : batch_.samples) {
    if (samples.size() == kKeptSamples) break;
    samples.push_back({s.source, s.document, s.begin, s.length});
  }
  events_->append(
      {{"step", step_ + 1},
       {"event", name_of(verdict_.action)},
       {"why", verdict_.reason},
       {"samples", samples}}
  );
  warn("not applied: " + verdict_.reason);
  return false;
}

void Trainer::apply(const Gradients& g, double scaled, double norm, double lr) {
  const double scale =
      optim::clip_factor(norm, session_.recipe.optim.clip) / scaled;
  optimizer_->step(g.arrays, static_cast<float>(scale), lr);
}

}  // namespace hearth::train
