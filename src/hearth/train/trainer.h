#pragma once
// The one loop. It draws batches, sums gradients, updates, validates, saves and
// survives; what is minimised, on what data and over which parameters is the
// session's business.
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "hearth/optim/optimizer.h"
#include "hearth/train/batch_policy.h"
#include "hearth/train/checkpoint.h"
#include "hearth/train/gradient.h"
#include "hearth/train/health.h"
#include "hearth/train/metrics_log.h"
#include "hearth/train/run_directory.h"
#include "hearth/train/session.h"

namespace hearth::train {

// One line of metrics.jsonl.
struct StepMetrics {
  std::int64_t step = 0, steps = 0;
  std::uint64_t tokens = 0;  // seen so far
  double loss = 0, smoothed = 0, lr = 0, grad_norm = 0;
  double tokens_per_s = 0;
  std::optional<double> share_of_peak;
  std::size_t memory = 0;  // peak of the step, bytes
  double stall_ms = 0;
  std::uint32_t rows = 0, length = 0;
  bool skipped = false;
  std::optional<double> valid_loss;

  Json to_json() const;
};

struct TrainHooks {
  std::function<void(const StepMetrics&)> on_step;
  std::function<void(const std::string&)> note;
  // Asked after each step; true saves and throws Interrupted.
  std::function<bool()> stop;
  // GFLOP/s of this machine in the run's precision; 0 where not measured.
  double peak_gflops = 0;
  // Rows of a micro-batch to begin with and at most; 0: as the recipe has it.
  std::uint32_t rows = 0, most_rows = 0;
};

struct TrainResult {
  std::int64_t steps = 0;
  std::uint64_t tokens = 0;
  double train_loss = 0;
  std::optional<double> valid_loss, best_valid_loss;
  double tokens_per_s = 0;
  std::optional<double> share_of_peak;
  std::size_t peak_bytes = 0;
  bool stopped_early = false;
};

class Trainer {
 public:
  Trainer(Session& session, RunDirectory& run, TrainHooks hooks);

  // Goes on from the newest valid checkpoint of the run. False when there is
  // none.
  bool resume();
  TrainResult run();
  // After the run: the weights of the best validation, if they are not those
  // it ended with.
  void restore_best();

 private:
  Session& session_;
  RunDirectory& run_;
  TrainHooks hooks_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<data::Loader> loader_;
  BatchPolicy policy_;
  Health health_;
  std::unique_ptr<MetricsLog> metrics_, events_;
  data::Batch batch_;

  std::int64_t step_ = 0, steps_ = 0;
  std::uint64_t tokens_ = 0;
  double smoothed_ = 0;
  double best_valid_ = std::numeric_limits<double>::infinity();
  std::int64_t best_step_ = 0, since_best_ = 0;
  std::optional<double> valid_;
  std::size_t peak_ = 0;
  double seconds_ = 0, timed_tokens_ = 0;

  StepMetrics train_step();
  void note_speed(StepMetrics& m, double seconds);
  // Whether to apply the update, after the health check has seen it.
  bool healthy(const Gradients& g, double mean_loss, double norm);
  void apply(const Gradients& g, double norm, double lr);
  void roll_back();
  double learning_rate() const;
  // Moves scheduled gates to where they stand after so many steps.
  void set_gates(std::int64_t step);
  void validate_now();
  void save();
  void restore(const Checkpoint& checkpoint);
  Json state() const;
  bool due(std::int64_t every) const;
  TrainResult result() const;
  void note(const std::string& text) const;
};

}  // namespace hearth::train
