#include "hearth/cli/train/tune_run.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/spelling.h"
#include "hearth/base/thread_pool.h"
#include "hearth/base/units.h"
#include "hearth/cli/interrupt.h"
#include "hearth/hardware/machine.h"
#include "hearth/ops/device.h"
#include "hearth/ops/op.h"

namespace hearth::cli {
namespace {

using train::Setting;
using train::TuneOutcome;
using train::TuneRow;

const std::vector<std::string> kWhat = {
    "batch", "checkpointing", "precision", "threads"
};
// Micro-batches of fewer tokens than this are never the fastest.
constexpr std::int64_t kLeastTokens = 512;
// Shares of the time limit after which the search, and then the comparison,
// begins no further measurement.
constexpr double kSearchShare = 0.6, kCompareShare = 0.85;

std::vector<int> thread_counts() {
  std::vector<int> counts;
  for (int n = shared_pool().size(); n >= 1; n /= 2) counts.push_back(n);
  return counts;
}

std::int64_t rows_together(const train::Recipe& recipe) {
  return recipe.objective().needs.row_group;
}

}  // namespace

void check(const TuneLimits& limits) {
  for (const auto& word : limits.over) {
    if (std::ranges::find(kWhat, word) != kWhat.end()) continue;
    throw UsageError(
        fmt::format(
            "--over must be of {}, got '{}'{}", fmt::join(kWhat, ", "), word,
            did_you_mean(word, kWhat)
        )
    );
  }
}

TuneRun::TuneRun(
    const Context& context,
    const train::Recipe& recipe,
    const TuneLimits& limits
)
    : context_(context),
      limits_(limits),
      start_(seconds_now()),
      side_(std::make_unique<TuneSide>(context, recipe)) {}

double TuneRun::spent() const {
  return seconds_now() - start_;
}

void TuneRun::show(std::string line) const {
  if (limits_.table_on_stderr) {
    if (line.ends_with('\n')) line.pop_back();
    return context_.note(line);
  }
  context_.print(line);
  std::fflush(stdout);
}

bool TuneRun::stopped(double share) const {
  return InterruptGuard::interrupted() || spent() > limits_.seconds * share;
}

bool TuneRun::wanted(const char* what) const {
  return limits_.over.empty() ||
         std::ranges::find(limits_.over, what) != limits_.over.end();
}

train::TuneSpace TuneRun::space() const {
  const train::Recipe& r = side_->recipe();
  train::TuneSpace s;
  const auto batch = train::batch_choice(r);
  s.step_rows = side_->step_rows();
  s.least_rows = batch.rows;
  if (wanted("batch")) {
    const std::int64_t together = rows_together(r);
    s.least_rows = s.floor_rows = together;
    const bool pinned =
        r.train.micro_batch_size > 0 || r.train.gradient_accumulation_steps > 0;
    if (pinned) {
      s.own_rows = std::max(together, batch.rows / together * together);
    }
    while (s.least_rows * r.longest() < kLeastTokens &&
           s.least_rows < s.step_rows) {
      s.least_rows = std::min(2 * s.least_rows, s.step_rows);
    }
  } else {
    s.step_rows = s.floor_rows = batch.rows;
  }
  const std::string& policy = r.train.checkpointing;
  s.policies = {policy == "auto" ? "none" : policy};
  if (wanted("checkpointing")) {
    for (const char* other : {"none", "2", "all"}) {
      if (s.policies.front() != other) s.policies.emplace_back(other);
    }
  }
  s.precisions = {r.train.precision};
  if (wanted("precision")) {
    s.precisions.emplace_back(r.train.precision == "fp32" ? "bf16" : "fp32");
  }
  s.threads = {shared_pool().size()};
  if (wanted("threads")) s.threads = thread_counts();
  return s;
}

train::TuneResult TuneRun::run_search(
    TuneSide& side,
    const train::TuneSpace& space,
    double share
) {
  train::TuneCalls calls;
  calls.budget = side.machine().budget;
  calls.predict = [&](const Setting& s) { return side.predict(s); };
  calls.measure = [&](const Setting& s) { return side.measure(s); };
  calls.stop = [this, share] { return stopped(share); };
  calls.on_row = [&](const TuneRow& row) {
    if (&side != side_.get()) return;
    report_.search.rows.push_back(row);
    report_.search.best = train::fastest(report_.search.rows);
    report_.search.complete = false;
    if (context_.common.json) {
      context_.note(fmt::format("{} ...", describe(row.setting)));
    } else {
      show(tune_line(row));
    }
    if (on_row) on_row();
  };
  return train::tune(space, calls);
}

void TuneRun::search() {
  report_.search = {};
  if (!context_.common.json) show(tune_head());
  report_.search = run_search(*side_, space(), kSearchShare);
  if (!report_.search.complete && !InterruptGuard::interrupted()) {
    report_.notes.push_back(
        fmt::format(
            "the search ended at its time: --seconds {:.0f} was not enough to "
            "try everything",
            limits_.seconds
        )
    );
  }
}

// The planner chooses the model's size; where training it is measured to be
// slower than the preset allows, the next smaller size is tried.
void TuneRun::search_preset(const train::Preset& preset) {
  const train::Recipe base = side_->recipe();
  auto choice = train::choose_size(base, preset, side_->machine());
  const auto ladder = train::size_ladder();
  for (std::size_t size = choice.size;; --size) {
    const auto recipe = train::sized(base, ladder[size]);
    side_ = std::make_unique<TuneSide>(context_, recipe);
    const auto& m = recipe.model;
    context_.note(
        fmt::format(
            "{}: width {}, {} layers, {} heads, context {}, {} tokens a step",
            preset.name, m.dim, m.layers, m.heads, recipe.data.length,
            recipe.train.tokens_per_step
        )
    );
    search();
    if (!report_.search.best) return;
    const TuneRow& best = report_.search.rows[*report_.search.best];
    const double hours =
        best.step_seconds * static_cast<double>(recipe.train.steps) / 3600;
    report_.notes.push_back(
        fmt::format(
            "{}: {} steps (20 tokens a parameter) take {:.2g} hours, {:g} are "
            "allowed; memory {}, {:.0f} % of {}",
            preset.name, recipe.train.steps, hours, preset.hours,
            format_bytes(best.peak),
            100 * static_cast<double>(best.peak) /
                static_cast<double>(side_->machine().budget),
            format_bytes(side_->machine().budget)
        )
    );
    if (hours <= preset.hours * 1.1 || size == 0 || stopped(0.5)) return;
  }
}

TuneRow TuneRun::measured(TuneSide& side, const Setting& s) {
  TuneRow row;
  const std::size_t predicted = side.predict(s);
  const std::size_t budget = side.machine().budget;
  if (budget > 0 && predicted > budget) {
    row.outcome = TuneOutcome::too_large;
  } else {
    row = side.measure(s);
  }
  row.setting = s;
  row.predicted = predicted;
  return row;
}

// Measures both sides twice, alternating, and takes each side's better time, so
// that a machine that is busy for a while slows both. Where memory does not
// hold both, the side that is not measured is closed.
std::pair<TuneRow, TuneRow> TuneRun::alternately(
    TuneSide& before,
    const Setting& before_setting,
    const Setting& after_setting
) {
  const std::size_t budget = before.machine().budget;
  const bool together =
      budget == 0 ||
      before.predict(before_setting) + side_->predict(after_setting) <= budget;
  TuneRow rows[2];
  for (int round = 0; round < 4; ++round) {
    const bool first = round == 0 || round == 3;
    TuneRow& kept = rows[first ? 0 : 1];
    if (round > 1 &&
        (stopped(kCompareShare) || kept.outcome != TuneOutcome::measured)) {
      break;
    }
    // In the first two rounds only one side is open, so that its memory is
    // known.
    if (!together || round < 2) (first ? *side_ : before).close();
    TuneRow row = first ? measured(before, before_setting)
                        : measured(*side_, after_setting);
    if (round > 1) row.peak = std::min(row.peak, kept.peak);
    if (round < 2 || row.step_seconds < kept.step_seconds) kept = row;
  }
  return {rows[0], rows[1]};
}

void TuneRun::compare(const std::optional<train::Recipe>& against) {
  if (!report_.search.best || stopped(kCompareShare)) return;
  const TuneRow after = report_.search.rows[*report_.search.best];
  train::Recipe basic = against ? *against : side_->recipe();
  if (!against) {
    basic.train.precision = "fp32";
    basic.train.checkpointing = "none";
  }
  TuneSide before(context_, basic);
  const std::int64_t together = rows_together(basic);
  Setting own{
      .rows = std::max(together, train::batch_choice(basic).rows),
      .checkpointing = basic.train.checkpointing,
      .precision = basic.train.precision,
      .threads = shared_pool().size()
  };
  if (own.checkpointing == "auto") own.checkpointing = "none";
  Setting equal = after.setting;
  equal.rows = std::min(own.rows, side_->step_rows());
  side_->close();
  const train::TuneSpace ladder{
      .step_rows = before.step_rows(),
      .least_rows = std::max(together, own.rows / 4 / together * together),
      .floor_rows = together,
      .precisions = {own.precision},
      .policies = {own.checkpointing},
      .threads = {own.threads}
  };
  const auto found = run_search(before, ladder, kCompareShare);
  const Setting best = found.best ? found.rows[*found.best].setting : own;
  const auto [before_equal, after_equal] = alternately(before, own, equal);
  const auto [before_best, after_best] =
      own == best && equal == after.setting
          ? std::pair(before_equal, after_equal)
          : alternately(before, best, after.setting);
  before.close();
  side_->close();
  const auto faster = [](const TuneRow& a, const TuneRow& b) {
    std::optional<double> ratio;
    if (a.tokens_per_s > 0 && b.tokens_per_s > 0) {
      ratio = a.tokens_per_s / b.tokens_per_s;
    }
    return ratio;
  };
  report_.compared = {
      {"before", "equal", before_equal, {}, {}},
      {"after", "equal", after_equal, faster(after_equal, before_equal), {}},
      {"before", "best", before_best, {}, {}},
      {"after", "best", after_best, faster(after_best, before_best), {}}
  };
  report_.same_start = !against;
  compare_loss(before, before_best.setting);
  compare_cpu(after);
}

// Measures the same recipe and setting on the CPU, to show what the GPU gains.
void TuneRun::compare_cpu(const TuneRow& after) {
  if (ops::on_cpu({}) || stopped(kCompareShare)) return;
  side_->close();
  Context cpu = context_;
  cpu.common.device = "cpu";
  ops::use_device("cpu");
  {
    TuneSide side(cpu, side_->recipe());
    const TuneRow row = measured(side, after.setting);
    report_.compared.push_back({"cpu", "equal", row, {}, {}});
    if (row.tokens_per_s > 0) {
      report_.notes.push_back(
          fmt::format(
              "{:.2f} times the CPU's tokens/s at the same batch",
              after.tokens_per_s / row.tokens_per_s
          )
      );
    }
  }
  ops::use_device(context_.common.device);
}

// Trains each side for as many tokens and compares the held-out losses. How an
// update is cut into micro-batches does not change it, so one loss serves both
// rows of a side.
void TuneRun::compare_loss(TuneSide& before, const Setting& setting) {
  if (InterruptGuard::interrupted()) return;
  const TuneRow& slow = report_.compared[2].row;
  const TuneRow& fast = report_.compared[3].row;
  if (slow.outcome != TuneOutcome::measured) return;
  // As many tokens as both sides can train on in the time that is left, in
  // whole steps.
  const double left =
      std::max(0.05 * limits_.seconds, limits_.seconds - spent());
  const double tokens =
      0.8 * left / (1 / slow.tokens_per_s + 1 / fast.tokens_per_s);
  const auto step = static_cast<double>(side_->recipe().step_tokens());
  const auto count =
      static_cast<std::uint64_t>(std::max(1.0, tokens / step) * step);
  const auto first = before.valid_loss(setting, count);
  const auto second = side_->valid_loss(fast.setting, count);
  if (!first || !second) return;
  report_.loss_tokens = count;
  for (auto& c : report_.compared) {
    c.valid_loss = c.side == "before" ? first : second;
  }
}

train::Recipe TuneRun::best_recipe() const {
  const auto& search = report_.search;
  const Setting& best = search.rows.at(search.best.value()).setting;
  train::Recipe recipe = apply_setting(side_->recipe(), best);
  // 0 stands for all threads of whatever machine the recipe runs on.
  recipe.run.threads =
      best.threads == hardware::usable_threads() ? 0 : best.threads;
  return recipe;
}

}  // namespace hearth::cli
