#include "hearth/cli/train/tune_side.h"

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/base/progress.h"
#include "hearth/base/thread_pool.h"
#include "hearth/bench/statistics.h"
#include "hearth/cli/data/prepare_data.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/train/plan_recipe.h"
#include "hearth/kernels/table.h"
#include "hearth/ops/execution.h"
#include "hearth/train/loop/validation.h"
#include "hearth/train/plan/trial.h"

namespace hearth::cli {
namespace {

using train::Setting;
using train::TuneOutcome;
using train::TuneRow;

constexpr int kTimedUpdates = 3;
constexpr double kTimedSeconds = 0.4;

// While it lives, what this thread evaluates runs on a pool of `threads`
// threads.
class Team {
 public:
  explicit Team(int threads) {
    if (threads == shared_pool().size()) return;
    pool_.emplace(threads);
    scope_.emplace(kernels::best(), &*pool_);
  }
  ~Team() {
    if (pool_) mlx::core::synchronize();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

 private:
  std::optional<ThreadPool> pool_;
  std::optional<ops::ScopedExecution> scope_;
};

}  // namespace

train::Recipe apply_setting(const train::Recipe& recipe, const Setting& s) {
  train::Recipe r = recipe;
  // The update keeps its tokens; only how it is cut into micro-batches changes.
  r.train.tokens_per_step = static_cast<std::int64_t>(recipe.step_tokens());
  r.train.gradient_accumulation_steps = 0;
  r.train.micro_batch_size = s.rows;
  r.train.checkpointing = s.checkpointing;
  r.train.precision = s.precision;
  return r;
}

TuneSide::TuneSide(const Context& context, train::Recipe recipe)
    : context_(context),
      recipe_(std::move(recipe)),
      model_(train::planned_model(recipe_)),
      machine_(this_machine(recipe_, context)) {}

TuneSide::~TuneSide() = default;

std::int64_t TuneSide::step_rows() const {
  return train::batch_choice(recipe_).all;
}

void TuneSide::close() {
  session_.reset();
  mlx::core::clear_cache();
}

std::size_t TuneSide::bytes_of(const train::Recipe& r, int threads) const {
  train::PlanMachine m = machine_;
  m.threads = threads;
  m.budget = 0;
  return train::make_plan(r, model_, m).memory.total();
}

// The recipe with the setting, and with the packed copies of matrices that a
// run with this memory would keep.
train::Recipe TuneSide::settled(const Setting& s) const {
  train::Recipe r = apply_setting(recipe_, s);
  if (r.train.packed != "auto") return r;
  r.train.packed = "all";
  if (machine_.budget > 0 && bytes_of(r, s.threads) > machine_.budget) {
    r.train.packed = "head";
  }
  return r;
}

std::size_t TuneSide::predict(const Setting& s) const {
  return bytes_of(settled(s), s.threads);
}

train::Session& TuneSide::session_for(const Setting& s) {
  set_memory_budget(machine_.budget);
  const train::Recipe wanted = settled(s);
  const auto fits = [&](const train::TrainSection& t) {
    return t.precision == s.precision && t.packed == wanted.train.packed;
  };
  if (!session_ || !fits(session_->recipe.train)) {
    close();
    session_ = std::make_unique<train::Session>(
        train::open_session(wanted, [&](const data::DataConfig& d) {
          return prepare_with_progress(context_, d);
        })
    );
  }
  session_->model->set_checkpointing(
      train::checkpointed_layers(
          s.checkpointing, session_->model->config().layers
      )
  );
  return *session_;
}

TuneRow TuneSide::measure(const Setting& s) {
  const Team team(s.threads);
  TuneRow row;
  try {
    train::Session& session = session_for(s);
    const auto all = static_cast<double>(step_rows());
    const auto length = static_cast<std::uint64_t>(recipe_.longest());
    const std::int64_t run = std::min(2 * s.rows, step_rows());
    const auto trial = train::run_trial(
        session, {.rows = static_cast<std::uint32_t>(s.rows),
                  .batch_tokens = static_cast<std::uint64_t>(run) * length,
                  .steps = kTimedUpdates,
                  .seconds = kTimedSeconds,
                  .stop = InterruptGuard::interrupted}
    );
    if (trial.stopped) throw Interrupted("interrupted");
    if (trial.rows < s.rows) {
      row.outcome = TuneOutcome::out_of_memory;
      return row;
    }
    const double pass = bench::median(trial.gradient_seconds);
    row.step_seconds = pass * all / static_cast<double>(run) +
                       bench::median(trial.update_seconds);
    row.spread = bench::spread(trial.gradient_seconds);
    row.samples_per_s = all / row.step_seconds;
    row.tokens_per_s = row.samples_per_s * static_cast<double>(length);
    row.peak = trial.peak;
    if (machine_.peak_gflops > 0 && s.precision == recipe_.train.precision) {
      row.share_of_peak = row.tokens_per_s *
                          session.flops_per_token(recipe_.longest()) /
                          (machine_.peak_gflops * 1e9);
    }
  } catch (const OutOfMemory&) {
    close();
    row.outcome = TuneOutcome::out_of_memory;
  }
  return row;
}

std::optional<double> TuneSide::valid_loss(
    const Setting& s,
    std::uint64_t tokens
) {
  const Team team(s.threads);
  close();
  train::Session& session = session_for(s);
  if (!session.data.has_valid()) return {};
  const auto rows = static_cast<std::uint32_t>(s.rows);
  Progress progress({"learning", "tokens", tokens});
  const auto trial = train::run_trial(
      session, {.rows = rows,
                .tokens = tokens,
                .stop = InterruptGuard::interrupted,
                .progress = [&](std::uint64_t n) { progress.update(n); }}
  );
  if (trial.stopped) throw Interrupted("interrupted");
  progress.finish();
  const auto v =
      train::validate(session, rows, {.stop = InterruptGuard::interrupted});
  if (v.stopped) throw Interrupted("interrupted");
  close();
  if (v.tokens == 0) return {};
  return v.loss;
}

}  // namespace hearth::cli
