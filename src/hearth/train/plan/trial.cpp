#include "hearth/train/plan/trial.h"

#include <algorithm>
#include <deque>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/hardware/process_peak.h"
#include "hearth/optim/schedule.h"
#include "hearth/train/loop/session_step.h"
#include "hearth/train/plan/batch_policy.h"

namespace hearth::train {
namespace {

class Trial {
 public:
  Trial(Session& session, const TrialOptions& options)
      : session_(session),
        options_(options),
        optimizer_(make_optimizer(session)),
        update_(make_step(session, *optimizer_, options.objective)),
        loader_(session.cache, loader_config()) {
    result_.rows = options.rows;
  }

  TrialResult run() {
    mx::clear_cache();
    const bool counted = hardware::reset_process_peak();
    while (!done() && !result_.stopped) {
      send_step();
      if (sent_.size() == update_->most_under_way()) take_step();
      if (options_.progress) options_.progress(result_.tokens);
      result_.stopped = options_.stop && options_.stop();
    }
    while (!sent_.empty()) take_step();
    result_.stall_seconds = loader_.stats().stall_seconds;
    result_.peak = counted ? hardware::process_peak() : charged_;
    return std::move(result_);
  }

 private:
  Session& session_;
  const TrialOptions& options_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<Step> update_;
  data::Loader loader_;
  data::Batch batch_;
  // A step that the device may be at still.
  struct Sent {
    std::uint64_t tokens;
    std::uint32_t length;
    double waited;  // seconds for its batch
    bool timed;
  };
  std::deque<Sent> sent_;
  TrialResult result_;       // steps and tokens: of what was sent
  std::size_t charged_ = 0;  // bytes, at the peak of a step

  data::LoaderConfig loader_config() const {
    auto config = session_.train_loader();
    if (options_.batch_tokens > 0) {
      config.tokens_per_batch = options_.batch_tokens;
    }
    return config;
  }

  bool done() const {
    if (options_.tokens > 0) return result_.tokens >= options_.tokens;
    return result_.steps >= options_.warm_up + options_.steps &&
           result_.timed_seconds >= options_.seconds;
  }

  double learning_rate() const {
    const auto& recipe = session_.recipe;
    const auto each = static_cast<long>(recipe.step_tokens());
    return optim::learning_rate(
        recipe.optim, static_cast<long>(result_.tokens) / each,
        static_cast<long>(recipe.train.steps)
    );
  }

  void send_step() {
    const double start = seconds_now();
    if (!loader_.next(batch_))
      throw Error("the training data has no batch to give");
    const bool timed = result_.steps >= options_.warm_up;
    sent_.push_back(
        {batch_.tokens, batch_.length, seconds_now() - start, timed}
    );
    const auto longest = static_cast<std::uint32_t>(session_.recipe.longest());
    update_->send(
        batch_,
        {.number = result_.steps,
         .rows = rows_of(std::uint64_t{result_.rows} * longest, batch_.length),
         .lr = learning_rate()}
    );
    result_.steps += 1;
    result_.tokens += batch_.tokens;
  }

  void take_step() {
    const Sent sent = sent_.front();
    sent_.pop_front();
    const StepResult made = update_->take();
    if (made.shrunk) {
      const auto longest =
          static_cast<std::uint32_t>(session_.recipe.longest());
      result_.rows = rows_of(std::uint64_t{made.rows} * sent.length, longest);
    }
    charged_ = std::max(charged_, made.peak);
    result_.train_loss = made.loss;
    if (!sent.timed) return;
    result_.gradient_seconds.push_back(made.gradient_seconds);
    result_.update_seconds.push_back(made.update_seconds);
    double all = made.gradient_seconds + made.update_seconds;
    // Where steps overlap, a device works on the last one during this wait.
    if (update_->most_under_way() == 1) all += sent.waited;
    result_.timed_seconds += all;
    result_.rates.push_back(static_cast<double>(sent.tokens) / all);
  }
};

}  // namespace

TrialResult run_trial(Session& session, const TrialOptions& options) {
  return Trial(session, options).run();
}

}  // namespace hearth::train
