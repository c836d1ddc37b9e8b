#include "hearth/train/plan/tuning.h"

#include <algorithm>

#include <fmt/format.h>

namespace hearth::train {
namespace {

// Less than this much faster is noise.
constexpr double kGain = 1.01;

class Search {
 public:
  Search(const TuneSpace& space, const TuneCalls& calls)
      : space_(space), calls_(calls) {}

  TuneResult run() {
    Setting start{
        .rows = space_.least_rows,
        .checkpointing = space_.policies.front(),
        .precision = space_.precisions.front(),
        .threads = space_.threads.front()
    };
    if (space_.own_rows > 0) {
      Setting own = start;
      own.rows = space_.own_rows;
      attempt(own);
    }
    const bool edge = climb(start);
    if (edge) descend(start);
    for (std::size_t i = 1; i < space_.policies.size(); ++i) {
      Setting again = here(start);
      again.checkpointing = space_.policies[i];
      attempt(again);
      if (edge) descend(again);
      // Where memory ended the ladder, less memory may carry it on.
      again.rows = std::min(again.rows * 2, space_.step_rows);
      if (edge) climb(again);
    }
    for (std::size_t i = 1; i < space_.precisions.size(); ++i) {
      Setting other = here(start);
      other.precision = space_.precisions[i];
      attempt(other);
    }
    for (std::size_t i = 1; i < space_.threads.size(); ++i) {
      Setting fewer = here(start);
      fewer.threads = space_.threads[i];
      attempt(fewer);
    }
    result_.best = fastest(result_.rows);
    return std::move(result_);
  }

 private:
  const TuneSpace& space_;
  const TuneCalls& calls_;
  TuneResult result_;

  Setting here(const Setting& otherwise) const {
    const auto best = fastest(result_.rows);
    return best ? result_.rows[*best].setting : otherwise;
  }

  // Doubles the rows; true when memory was what ended it.
  bool climb(Setting s) {
    double best = 0;
    int without_gain = 0;
    for (;; s.rows = std::min(s.rows * 2, space_.step_rows)) {
      const auto row = attempt(s);
      if (!row) return false;
      if (row->outcome != TuneOutcome::measured) return true;
      const bool gain = row->tokens_per_s > best * kGain;
      without_gain = gain ? 0 : without_gain + 1;
      best = std::max(best, row->tokens_per_s);
      if (without_gain == 2 || s.rows >= space_.step_rows) return false;
    }
  }

  // Halves the rows, as long as nothing has fitted at all.
  void descend(Setting s) {
    const std::int64_t least = space_.floor_rows;
    while (!fastest(result_.rows) && s.rows > least) {
      s.rows = std::max(least, s.rows / 2 / least * least);
      if (!attempt(s)) return;
    }
  }

  // Nothing when the search was told to stop.
  std::optional<TuneRow> attempt(const Setting& s) {
    const auto same = std::ranges::find(result_.rows, s, &TuneRow::setting);
    if (same != result_.rows.end()) return *same;
    if (!result_.complete || (calls_.stop && calls_.stop())) {
      result_.complete = false;
      return {};
    }
    TuneRow row;
    const std::size_t predicted = calls_.predict(s);
    if (calls_.budget > 0 && predicted > calls_.budget) {
      row.outcome = TuneOutcome::too_large;
    } else {
      row = calls_.measure(s);
    }
    row.setting = s;
    row.predicted = predicted;
    result_.rows.push_back(row);
    if (calls_.on_row) calls_.on_row(row);
    return row;
  }
};

}  // namespace

TuneResult tune(const TuneSpace& space, const TuneCalls& calls) {
  return Search(space, calls).run();
}

std::optional<std::size_t> fastest(const std::vector<TuneRow>& rows) {
  double most = 0;
  for (const auto& r : rows) most = std::max(most, r.tokens_per_s);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TuneRow& r = rows[i];
    if (r.outcome != TuneOutcome::measured) continue;
    if (r.tokens_per_s * kGain < most) continue;
    if (!best || r.peak < rows[*best].peak) best = i;
  }
  return best;
}

const char* name_of(TuneOutcome outcome) {
  if (outcome == TuneOutcome::measured) return "measured";
  return outcome == TuneOutcome::too_large ? "would not fit" : "out of memory";
}

std::string describe(const Setting& s) {
  return fmt::format(
      "{} rows, checkpointing {}, {}, {} thread{}", s.rows, s.checkpointing,
      s.precision, s.threads, s.threads == 1 ? "" : "s"
  );
}

Json to_json(const TuneRow& row) {
  constexpr double kMib = 1 << 20;
  const Setting& s = row.setting;
  Json j{
      {"case", describe(s)},
      {"micro_batch", s.rows},
      {"checkpointing", s.checkpointing},
      {"precision", s.precision},
      {"threads", s.threads},
      {"outcome", name_of(row.outcome)},
      {"predicted_mib", static_cast<double>(row.predicted) / kMib}
  };
  if (row.outcome != TuneOutcome::measured) return j;
  j["median_ms"] = row.step_seconds * 1e3;
  j["spread"] = row.spread;
  j["rate"] = row.tokens_per_s;
  j["unit"] = "tokens/s";
  j["samples_per_s"] = row.samples_per_s;
  if (row.share_of_peak) j["share_of_peak"] = *row.share_of_peak;
  j["peak_mib"] = static_cast<double>(row.peak) / kMib;
  return j;
}

}  // namespace hearth::train
