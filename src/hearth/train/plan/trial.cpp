#include "hearth/train/plan/trial.h"

#include <algorithm>

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
    while (!done()) {
      step(result_.steps >= options_.warm_up);
      if (options_.progress) options_.progress(result_.tokens);
      result_.stopped = options_.stop && options_.stop();
      if (result_.stopped) break;
    }
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
  TrialResult result_;
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

  void step(bool timed) {
    const double start = seconds_now();
    if (!loader_.next(batch_))
      throw Error("the training data has no batch to give");
    const double waited = seconds_now() - start;
    const auto longest = static_cast<std::uint32_t>(session_.recipe.longest());
    const StepResult made = update_->run(
        batch_,
        {.number = result_.steps,
         .rows = rows_of(std::uint64_t{result_.rows} * longest, batch_.length),
         .lr = learning_rate()}
    );
    if (made.shrunk) {
      result_.rows = rows_of(std::uint64_t{made.rows} * batch_.length, longest);
    }
    charged_ = std::max(charged_, made.peak);
    result_.steps += 1;
    result_.tokens += batch_.tokens;
    result_.train_loss = made.loss;
    if (!timed) return;
    result_.gradient_seconds.push_back(made.gradient_seconds);
    result_.update_seconds.push_back(made.update_seconds);
    const double all = waited + made.gradient_seconds + made.update_seconds;
    result_.timed_seconds += all;
    result_.rates.push_back(static_cast<double>(batch_.tokens) / all);
  }
};

}  // namespace

TrialResult run_trial(Session& session, const TrialOptions& options) {
  return Trial(session, options).run();
}

}  // namespace hearth::train
