#pragma once
// The one loop. It draws batches, sums gradients, updates, validates, saves and
// survives; what is minimised, on what data and over which parameters is the
// session's business.
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/optim/optimizer.h"
#include "hearth/train/loop/batch_source.h"
#include "hearth/train/loop/checkpoint.h"
#include "hearth/train/loop/health.h"
#include "hearth/train/loop/metric_sink.h"
#include "hearth/train/loop/run_directory.h"
#include "hearth/train/loop/save_schedule.h"
#include "hearth/train/loop/session.h"
#include "hearth/train/plan/batch_policy.h"
#include "hearth/train/step/step.h"

namespace hearth::train {

// One line of metrics.jsonl.
struct StepMetrics {
  std::int64_t step = 0, steps = 0;
  std::uint64_t tokens = 0;  // seen so far
  double loss = 0, lr = 0, grad_norm = 0;
  std::optional<double> smoothed;  // of the steps that were applied
  double tokens_per_s = 0;
  std::optional<double> share_of_peak;
  std::size_t memory = 0;  // peak of the step, bytes
  double stall_ms = 0;
  std::uint32_t rows = 0, length = 0;
  bool skipped = false;
  std::optional<double> valid_loss;
  NamedValues valid_means;           // of the objective's metrics
  std::optional<double> loss_scale;  // in float16

  Json to_json() const;
};

struct TrainHooks {
  std::function<void(const StepMetrics&)> on_step;
  // Told during a validation what share of it is done, after which of how many
  // steps.
  std::function<void(double share, std::int64_t step, std::int64_t steps)>
      on_validation;
  std::function<void(const std::string&)> note;
  // What went wrong and was lived with; a note where there is no such hook.
  std::function<void(const std::string&)> warn;
  // Asked after each step and within a validation; true saves and throws
  // Interrupted.
  std::function<bool()> stop;
  // GFLOP/s of this machine in the run's precision; 0 where not measured.
  double peak_gflops = 0;
  // Rows of a micro-batch, of the longest length, to begin with and at most; 0:
  // as the recipe has it.
  std::uint32_t rows = 0, most_rows = 0;
};

struct TrainResult {
  std::int64_t steps = 0;
  std::uint64_t tokens = 0;
  std::optional<double> train_loss;  // none before the first applied step
  std::optional<double> valid_loss;  // the last one
  NamedValues valid_means;           // of the objective's metrics, with it
  std::optional<double> best_valid_loss;
  std::int64_t best_step = 0;
  std::optional<double> tokens_per_s;  // none when no step was made
  std::optional<double> share_of_peak;
  std::size_t peak_bytes = 0;  // 0 when no step was made
  bool stopped_early = false;
  // Why its last weights are of no use; empty when nothing is wrong.
  std::string diverged;
  std::vector<std::string> warnings;  // what went wrong and was lived with
};

// What comes into the loop and what goes out of it.
struct LoopEnds {
  std::unique_ptr<BatchSource> batches;
  std::vector<std::unique_ptr<MetricSink>> sinks;
};
// The session's own data; the run's own files.
LoopEnds loop_ends(const Session& session, const RunDirectory& run);

class Trainer {
 public:
  Trainer(Session& session, RunDirectory& run, TrainHooks hooks, LoopEnds ends);
  Trainer(Session& session, RunDirectory& run, TrainHooks hooks)
      : Trainer(session, run, std::move(hooks), loop_ends(session, run)) {}

  // Goes on from the newest valid checkpoint of the run. False when there is
  // none; throws Error when there are some and none of them is valid, and
  // UsageError when the recipe ends before it or the base is not the run's.
  bool resume();
  TrainResult run();
  // After the run: the weights of the best validation, if they are not those
  // it ended with. False when they cannot be had; the last ones stand then.
  bool restore_best();
  // All that was warned of so far.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  Session& session_;
  RunDirectory& run_;
  TrainHooks hooks_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<Step> update_;
  LoopEnds ends_;
  BatchPolicy policy_;
  Health health_;
  std::string base_;  // names the frozen weights; empty: there are none
  // Steps that the device may be at still.
  struct Sent {
    data::Batch batch;
    StepMetrics metrics;  // as far as known
  };
  std::deque<Sent> sent_;
  bool draining_ = false;  // something waits for them to end
  data::Batch batch_;      // of the last step taken

  std::int64_t step_ = 0;
  std::int64_t discarded_ = 0;  // batches of steps that were rolled back
  std::int64_t proven_ = -1;    // step that was last rolled back to; -1: none
  std::int64_t steps_;          // set from what stands above
  std::uint64_t tokens_ = 0;
  std::optional<double> loss_, smoothed_, valid_;
  NamedValues valid_means_;
  double best_valid_ = std::numeric_limits<double>::infinity();
  std::int64_t best_step_ = 0, since_best_ = 0;
  Json measured_;  // what the best's loss is of
  // Events told of; unknown in a run whose checkpoint does not say.
  std::optional<long> events_ = 0;
  // The line of a step whose validation was interrupted.
  Json unvalidated_;
  SaveSchedule saves_;
  bool told_nothing_scored_ = false;
  std::size_t peak_ = 0;
  std::int64_t made_ = 0;  // steps of this process
  double seconds_ = 0, timed_tokens_ = 0, first_rate_ = 0;
  HealthVerdict verdict_;  // of the last step
  std::vector<std::string> warnings_;

  // trainer_step.cpp
  StepMetrics train_step();
  bool may_send_ahead() const;
  void send_step();
  StepMetrics take_step();
  void drop_sent();
  void note_speed(StepMetrics& m, double seconds);
  // Whether to apply the update, by the health check.
  void judge(const StepResult& made);
  void tell_overflow();
  // As a factor of the mean loss, as the recipe has it.
  double scale_of_mean() const;
  bool scales_loss() const { return session_.compute == mx::float16; }
  double learning_rate(std::int64_t step) const;

  // trainer_state.cpp
  void save();
  Json state() const;
  void restore(const Checkpoint& checkpoint);
  void restore_cut(const Json& state);
  // Throws UsageError when the checkpoint is of another base.
  void check_base(const Checkpoint& checkpoint) const;
  // best.json says what the loop knows, as far as its checkpoint is there and
  // the losses that follow can be compared with its own.
  void settle_best();
  void forget_best(const std::string& why);
  LatestCheckpoint before_trouble();
  void roll_back();
  void start_anew();
  [[noreturn]] void give_up();

  // trainer.cpp
  void open_logs();
  void tell_step(const Json& line);
  void tell_event(const Json& line);
  void after_step(StepMetrics& m);
  // Adds the loss to the step's line; throws Interrupted, having saved.
  void validate_now(Json& line);
  void validate_late();
  std::int64_t count_steps() const;
  // The step it ends with.
  std::int64_t end() const;
  bool early() const;
  bool stop_asked() const { return hooks_.stop && hooks_.stop(); }
  [[noreturn]] void interrupt() const;
  TrainResult result() const;
  void note(const std::string& text) const;
  void warn(const std::string& text);
};

}  // namespace hearth::train
