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
  for (const auto& [name, mean] : valid_means) j["valid_" + name] = mean;
  if (loss_scale) j["loss_scale"] = *loss_scale;
  if (skipped) j["skipped"] = true;
  return j;
}

double Trainer::learning_rate(std::int64_t step) const {
  return health_.lr_factor() *
         optim::learning_rate(session_.recipe.optim, step, steps_);
}

StepMetrics Trainer::train_step() {
  const double start = seconds_now();
  while (sent_.empty() || may_send_ahead()) send_step();
  StepMetrics m = take_step();
  note_speed(m, seconds_now() - start);
  return m;
}

// A device works on the next step while the host looks at the last. What is
// looked at beyond the numbers, weights and the loader's place, is that of the
// last step sent, so nothing is sent beyond a step after which that is due.
bool Trainer::may_send_ahead() const {
  if (draining_ || sent_.size() >= update_->most_under_way()) return false;
  const auto& t = session_.recipe.train;
  const std::int64_t last = step_ + std::ssize(sent_);
  const bool evaluated = t.eval_every > 0 && last % t.eval_every == 0;
  return last != end() && !evaluated && !saves_.due(last, seconds_now());
}

void Trainer::send_step() {
  Sent& sent = sent_.emplace_back();
  const double stalled = ends_.batches->stall_seconds();
  if (!ends_.batches->next(sent.batch)) {
    throw Error("the training data has no batch to give");
  }
  const data::Batch& batch = sent.batch;
  StepMetrics& m = sent.metrics;
  m.step = step_ + std::ssize(sent_);
  m.stall_ms = 1e3 * (ends_.batches->stall_seconds() - stalled);
  if (scales_loss()) m.loss_scale = scale_of_mean();
  m.rows = std::min(policy_.rows(batch.length), batch.rows);
  m.length = batch.length;
  m.lr = learning_rate(m.step - 1);
  StepRequest how{.number = m.step - 1, .rows = m.rows, .lr = m.lr};
  how.limits = health_.limits(batch.length);
  how.shrunk = [this](auto from, auto to, const std::string& why) {
    warn(
        fmt::format(
            "out of memory at {} rows, going on with {}: {}", from, to, why
        )
    );
  };
  update_->send(batch, how);
}

StepMetrics Trainer::take_step() {
  Sent sent = std::move(sent_.front());
  sent_.pop_front();
  if (sent_.empty()) draining_ = false;
  batch_ = std::move(sent.batch);
  StepMetrics m = sent.metrics;
  const StepResult made = update_->take();
  m.loss = made.loss;
  m.grad_norm = made.norm;
  m.rows = made.rows;
  m.skipped = made.outcome != StepOutcome::applied;
  m.memory = made.peak;
  judge(made);
  step_ += 1;
  tokens_ += batch_.tokens;
  peak_ = std::max(peak_, m.memory);
  // A short batch has fewer rows, too, and says nothing about memory.
  const std::uint64_t left = std::uint64_t{m.rows} * batch_.length;
  policy_.update(
      made.shrunk ? left : policy_.tokens(), m.memory, memory_budget(), step_
  );
  m.steps = end(), m.tokens = tokens_;
  if (made.weight > 0) loss_ = m.loss;
  if (!m.skipped) {
    smoothed_ = smoothed_ ? 0.95 * *smoothed_ + 0.05 * m.loss : m.loss;
  }
  m.smoothed = smoothed_;
  return m;
}

// Steps that the device is at still come to nothing.
void Trainer::drop_sent() {
  for (; !sent_.empty(); sent_.pop_front()) update_->take();
  draining_ = false;
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
  tell_event({{"step", step_ + 1}, {"event", "overflow"}, {"scale", now}});
  warn(
      fmt::format(
          "not applied: gradients of step {} are beyond float16, the loss is "
          "scaled by {:g} from here on",
          step_ + 1, now
      )
  );
}

void Trainer::judge(const StepResult& made) {
  verdict_ = {HealthAction::skip, {}, 0};
  if (made.outcome == StepOutcome::weightless) return;
  if (made.outcome == StepOutcome::overflowed) return tell_overflow();
  verdict_ = health_.note(
      step_ + 1, made.loss, made.norm, batch_.length,
      made.outcome == StepOutcome::applied
  );
  if (verdict_.action == HealthAction::apply) return;
  Json samples = Json::array();
  for (const auto& s : batch_.samples) {
    if (samples.size() == kKeptSamples) break;
    samples.push_back({s.source, s.document, s.begin, s.length});
  }
  tell_event(
      {{"step", step_ + 1},
       {"event", name_of(verdict_.action)},
       {"why", verdict_.reason},
       {"samples", samples}}
  );
  warn("not applied: " + verdict_.reason);
}

}  // namespace hearth::train
