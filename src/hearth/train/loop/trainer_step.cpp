// One step of the loop: what it trains on, whether it is fit to be applied,
// what it took.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/optim/schedule.h"
#include "hearth/train/loop/trainer.h"

namespace hearth::train {
namespace {

// Of a step that was not applied, written to events.jsonl.
constexpr std::size_t kKeptSamples = 256;

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

double Trainer::learning_rate() const {
  return health_.lr_factor() *
         optim::learning_rate(session_.recipe.optim, step_, steps_);
}

StepMetrics Trainer::train_step() {
  const double start = seconds_now();
  const double stalled = loader_->stats().stall_seconds;
  if (!loader_->next(batch_))
    throw Error("the training data has no batch to give");
  StepMetrics m;
  if (scales_loss()) m.loss_scale = scale_of_mean();
  m.rows = std::min(policy_.rows(batch_.length), batch_.rows);
  m.length = batch_.length;
  m.lr = learning_rate();
  const StepResult made = update(m.rows, m.lr);
  m.loss = made.loss;
  m.grad_norm = made.norm;
  m.rows = made.rows;
  m.skipped = made.outcome != StepOutcome::applied;
  m.memory = made.peak;
  if (made.outcome == StepOutcome::overflowed) tell_overflow();
  step_ += 1;
  tokens_ += batch_.tokens;
  peak_ = std::max(peak_, m.memory);
  // A short batch has fewer rows, too, and says nothing about memory.
  const std::uint64_t left = std::uint64_t{m.rows} * batch_.length;
  policy_.update(
      made.shrunk ? left : policy_.tokens(), m.memory, memory_budget(), step_
  );
  m.step = step_, m.steps = end(), m.tokens = tokens_;
  m.stall_ms = 1e3 * (loader_->stats().stall_seconds - stalled);
  if (made.weight > 0) loss_ = m.loss;
  if (!m.skipped) {
    smoothed_ = smoothed_ ? 0.95 * *smoothed_ + 0.05 * m.loss : m.loss;
  }
  m.smoothed = smoothed_;
  note_speed(m, seconds_now() - start);
  return m;
}

StepResult Trainer::update(std::uint32_t rows, double lr) {
  verdict_ = {HealthAction::skip, {}, 0};
  StepRequest how{.number = step_, .rows = rows, .lr = lr};
  how.accept = [this](const StepResult& found) { return healthy(found); };
  how.shrunk = [this](auto from, auto to, const std::string& why) {
    warn(
        fmt::format(
            "out of memory at {} rows, going on with {}: {}", from, to, why
        )
    );
  };
  return update_->run(batch_, how);
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
  return update_->loss_scale().scale() *
         static_cast<double>(session_.recipe.step_tokens());
}

void Trainer::tell_overflow() {
  const double now = scale_of_mean();
  events_->append({{"step", step_ + 1}, {"event", "overflow"}, {"scale", now}});
  warn(
      fmt::format(
          "not applied: gradients of step {} are beyond float16, the loss is "
          "scaled by {:g} from here on",
          step_ + 1, now
      )
  );
}

bool Trainer::healthy(const StepResult& found) {
  verdict_ = health_.judge(step_ + 1, found.loss, found.norm, batch_.length);
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

}  // namespace hearth::train
