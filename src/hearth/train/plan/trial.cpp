#include "hearth/train/plan/trial.h"

#include <algorithm>
#include <chrono>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/hardware/process_peak.h"
#include "hearth/optim/clip.h"
#include "hearth/optim/optimizer.h"
#include "hearth/optim/schedule.h"
#include "hearth/train/plan/batch_policy.h"
#include "hearth/train/step/accumulator.h"

namespace hearth::train {
namespace {

class Watch {
 public:
  // Seconds since the last call.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> took = now - last_;
    last_ = now;
    return took.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ =
      std::chrono::steady_clock::now();
};

class Trial {
 public:
  Trial(Session& session, const TrialOptions& options)
      : session_(session),
        options_(options),
        optimizer_(
            optim::Optimizer::make(
                session.recipe.optim,
                session.model->parameters().trainable()
            )
        ),
        loader_(session.cache, loader_config()) {
    result_.rows = options.rows;
  }

  TrialResult run() {
    mx::clear_cache();
    const bool counted = hardware::reset_process_peak();
    reset_memory_peak();
    while (!done()) {
      step(result_.steps >= options_.warm_up);
      if (options_.progress) options_.progress(result_.tokens);
      result_.stopped = options_.stop && options_.stop();
      if (result_.stopped) break;
    }
    result_.stall_seconds = loader_.stats().stall_seconds;
    result_.peak = counted ? hardware::process_peak() : memory_usage().peak;
    return std::move(result_);
  }

 private:
  Session& session_;
  const TrialOptions& options_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  data::Loader loader_;
  data::Batch batch_;
  TrialResult result_;

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
    Watch watch;
    if (!loader_.next(batch_))
      throw Error("the training data has no batch to give");
    const double waited = watch.lap();
    AccumulateOptions how;
    how.compute = session_.compute;
    how.eval_interval = static_cast<int>(session_.recipe.train.eval_interval);
    const auto longest = static_cast<std::uint32_t>(session_.recipe.longest());
    std::uint32_t rows =
        rows_of(std::uint64_t{result_.rows} * longest, batch_.length);
    bool shrunk = false;
    how.shrunk = [&](auto, auto, const std::string&) { shrunk = true; };
    const Objective& objective =
        options_.objective ? *options_.objective : *session_.objective;
    const auto g = accumulate(*session_.model, objective, batch_, rows, how);
    if (shrunk) {
      result_.rows = rows_of(std::uint64_t{rows} * batch_.length, longest);
    }
    const double gradients = watch.lap();
    const double norm = optim::global_norm(g.arrays) / g.weight_sum;
    const double scale =
        optim::clip_factor(norm, session_.recipe.optim.clip) / g.weight_sum;
    optimizer_->step(g.arrays, static_cast<float>(scale), learning_rate());
    const double update = watch.lap();
    result_.steps += 1;
    result_.tokens += batch_.tokens;
    result_.train_loss = g.loss_sum / g.weight_sum;
    if (!timed) return;
    result_.gradient_seconds.push_back(gradients);
    result_.update_seconds.push_back(update);
    result_.timed_seconds += waited + gradients + update;
    result_.rates.push_back(
        static_cast<double>(batch_.tokens) / (waited + gradients + update)
    );
  }
};

}  // namespace

TrialResult run_trial(Session& session, const TrialOptions& options) {
  return Trial(session, options).run();
}

}  // namespace hearth::train
