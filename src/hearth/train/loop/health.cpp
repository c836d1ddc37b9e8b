#include "hearth/train/loop/health.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::train {
namespace {

double median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

struct Spread {
  double middle, deviation;
};

// Of a normal sample the median distance from the median is 0.6745 standard
// deviations.
Spread spread_of(const std::deque<double>& values) {
  const double middle = median({values.begin(), values.end()});
  std::vector<double> distances;
  for (const double v : values) distances.push_back(std::abs(v - middle));
  return {middle, 1.4826 * median(std::move(distances))};
}

// The least deviation that counts, so that a flat window does not make a
// ripple a spike: 2 % of the loss, a quarter of the norm's logarithm.
constexpr double kLossFloor = 0.02, kNormFloor = 0.25;

// Norms are positive; 0 is what a step without a trained token has.
double log_norm(double norm) {
  return std::log(std::max(norm, 1e-30));
}

void push(std::deque<double>& values, double v, std::int64_t limit) {
  values.push_back(v);
  while (static_cast<std::int64_t>(values.size()) > limit) values.pop_front();
}

// "-nan" says no more than nan does.
std::string not_finite(double v) {
  return std::isnan(v) ? "nan" : v > 0 ? "infinite" : "minus infinite";
}

}  // namespace

void HealthConfig::fields(FieldVisitor& v) {
  v("enabled", enabled, "skip steps whose loss or gradient norm jumps",
    may_change());
  v("window", window,
    "good steps of rows as long that a new one is held against",
    may_change(between(4, 100000)));
  v("least", least, "good steps of a row length before any is judged",
    may_change(at_least(4)));
  v("z", z, "robust deviations above the median that are a spike",
    may_change(positive()));
  v("in_a_row", in_a_row, "bad steps in a row that roll back",
    may_change(at_least(1)));
  v("roll_backs", roll_backs, "roll-backs before the run stops",
    may_change(at_least(0)));
  v("lr_factor", lr_factor, "rate after a roll-back, as a share",
    may_change(between(0.001, 1)));
}

const char* name_of(HealthAction action) {
  switch (action) {
    case HealthAction::apply:
      return "apply";
    case HealthAction::skip:
      return "skip";
    case HealthAction::roll_back:
      return "roll back";
    case HealthAction::stop:
      return "stop";
  }
  return "";
}

Health::Health(HealthConfig config) : config_(config) {}

bool Health::known(const std::deque<double>& values) const {
  return config_.enabled && static_cast<std::int64_t>(values.size()) >=
                                std::min(config_.least, config_.window);
}

Health::Complaint Health::complaint(
    const Window& own,
    double loss,
    double norm
) const {
  if (!std::isfinite(loss)) return {"the loss is " + not_finite(loss)};
  if (!std::isfinite(norm)) return {"the gradient norm is " + not_finite(norm)};
  if (known(own.losses)) {
    const auto [middle, deviation] = spread_of(own.losses);
    const double z = (loss - middle) /
                     std::max({deviation, kLossFloor * std::abs(middle), 1e-9});
    if (z > config_.z) {
      return {fmt::format(
          "the loss {:.4g} is {:.1f} deviations above {:.4g}, the median of {} "
          "steps",
          loss, z, middle, own.losses.size()
      )};
    }
  }
  if (!known(own.norms)) return {};
  const auto [middle, deviation] = spread_of(own.norms);
  const double z = (log_norm(norm) - middle) / std::max(deviation, kNormFloor);
  if (z <= config_.z) return {};
  return {
      fmt::format(
          "the gradient norm {:.4g} is {:.1f} deviations above {:.4g}, the "
          "median of {} steps",
          norm, z, std::exp(middle), own.norms.size()
      ),
      true
  };
}

// Weights that skipped steps leave as they are keep their steep gradient: a
// norm that stays high beside a loss that does not is what is usual now, for
// rows of every length or of this one.
bool Health::is_usual_now(Window& own, bool norm_alone) {
  for (Row* row : {&row_, &own.row}) {
    row->norms = norm_alone ? row->norms + 1 : 0;
  }
  if (row_.norms >= config_.in_a_row) {
    for (auto& [length, window] : windows_) window.norms.clear();
    return true;
  }
  if (own.row.norms < config_.in_a_row) return false;
  own.norms.clear();
  return true;
}

void Health::note_good(Window& own, double loss, double norm) {
  push(own.losses, loss, config_.window);
  push(own.norms, log_norm(norm), config_.window);
  row_ = own.row = {};
  // A roll-back that four windows have passed since is no longer "again".
  if (++good_since_roll_back_ >= 4 * config_.window) roll_backs_ = 0;
}

HealthVerdict Health::note(
    long step,
    double loss,
    double gradient_norm,
    std::uint32_t length,
    bool applied
) {
  Window& own = windows_[length];
  const auto [what, norm_alone] = complaint(own, loss, gradient_norm);
  const bool usual = is_usual_now(own, norm_alone);
  if (applied) {
    note_good(own, loss, gradient_norm);
    return {};
  }
  if (!what.empty() && !usual) return bad_step(step, own, what);
  return bad_step(
      step, own,
      fmt::format(
          "the loss {:.4g} or the gradient norm {:.4g} was beyond what was "
          "usual when the step was sent",
          loss, gradient_norm
      )
  );
}

StepLimits Health::limits(std::uint32_t length) const {
  StepLimits out;
  const auto at = windows_.find(length);
  if (at == windows_.end()) return out;
  const Window& own = at->second;
  if (known(own.losses)) {
    const auto [middle, deviation] = spread_of(own.losses);
    out.loss =
        middle +
        config_.z * std::max({deviation, kLossFloor * std::abs(middle), 1e-9});
  }
  // One more high norm beside a good loss would be taken for the new usual.
  const auto last = config_.in_a_row - 1;
  const bool yields = row_.norms >= last || own.row.norms >= last;
  if (known(own.norms) && !yields) {
    const auto [middle, deviation] = spread_of(own.norms);
    out.norm = std::exp(middle + config_.z * std::max(deviation, kNormFloor));
  }
  return out;
}

HealthVerdict Health::bad_step(
    long step,
    Window& own,
    const std::string& what
) {
  const std::string reason = fmt::format("step {}: {}", step, what);
  for (Row* row : {&row_, &own.row}) {
    if (row->bad++ == 0) row->since = step;
  }
  const Row& row = own.row.bad > row_.bad ? own.row : row_;
  if (row.bad >= config_.in_a_row) return third(reason, row);
  return {HealthAction::skip, reason, row.since};
}

// Of bad steps in a row.
HealthVerdict Health::third(const std::string& reason, const Row& row) {
  const long bad = row.bad, since = row.since;
  if (roll_backs_ >= config_.roll_backs) {
    return {
        HealthAction::stop,
        fmt::format(
            "{}; {} bad steps in a row after {} roll-back(s), at {:.3g} of the "
            "rate: lower optim.lr, or look at the samples on record",
            reason, bad, roll_backs_, lr_factor_
        ),
        since
    };
  }
  forget_rows();
  good_since_roll_back_ = 0;
  ++roll_backs_;
  lr_factor_ *= config_.lr_factor;
  return {
      HealthAction::roll_back,
      fmt::format(
          "{}; {} bad steps in a row, so back to the last good checkpoint at "
          "{:.3g} of the rate",
          reason, bad, lr_factor_
      ),
      since
  };
}

void Health::forget_rows() {
  row_ = {};
  for (auto& [length, window] : windows_) window.row = {};
}

long Health::first_trouble() const {
  long first = row_.since;
  for (const auto& [length, window] : windows_) {
    const long since = window.row.since;
    if (since > 0 && (first == 0 || since < first)) first = since;
  }
  return first;
}

void Health::rolled_back_from(const Health& later) {
  forget_rows();
  roll_backs_ = later.roll_backs_;
  good_since_roll_back_ = later.good_since_roll_back_;
  lr_factor_ = later.lr_factor_;
}

namespace {

// The keys of rows that were there before there were windows.
template <class Row>
void add_row(Json& j, const Row& row) {
  j["bad_in_a_row"] = row.bad;
  j["trouble"] = row.since;
  j["norms_in_a_row"] = row.norms;
}

template <class Row>
Row read_row(const Json& j) {
  Row row;
  row.since = j.value("trouble", 0L);
  row.norms = j.value("norms_in_a_row", 0L);
  if (row.since > 0) row.bad = j.at("bad_in_a_row").template get<long>();
  return row;
}

}  // namespace

Json Health::state() const {
  Json windows = Json::array();
  for (const auto& [length, window] : windows_) {
    Json w{
        {"length", length},
        {"losses", window.losses},
        {"norms", window.norms},
    };
    add_row(w, window.row);
    windows.push_back(std::move(w));
  }
  Json j{
      {"windows", std::move(windows)},
      {"roll_backs", roll_backs_},
      {"good_since_roll_back", good_since_roll_back_},
      {"lr_factor", lr_factor_}
  };
  add_row(j, row_);
  return j;
}

void Health::restore(const Json& state) {
  try {
    Health read(config_);
    // States of before there were windows have one of all lengths: of no use.
    const bool old = !state.contains("windows") && state.contains("losses");
    for (const Json& w : old ? Json::array() : state.at("windows")) {
      Window& own = read.windows_[w.at("length").get<std::uint32_t>()];
      for (const double v : w.at("losses")) push(own.losses, v, config_.window);
      for (const double v : w.at("norms")) push(own.norms, v, config_.window);
      own.row = read_row<Row>(w);
      if (own.losses.size() < own.norms.size()) {
        throw FormatError("[train.health] its parts do not fit together");
      }
    }
    read.row_ = read_row<Row>(state);
    read.roll_backs_ = state.at("roll_backs").get<long>();
    read.good_since_roll_back_ = state.at("good_since_roll_back").get<long>();
    read.lr_factor_ = state.at("lr_factor").get<double>();
    if (!(read.lr_factor_ > 0)) {
      throw FormatError("[train.health] the rate's share must be above 0");
    }
    *this = std::move(read);
  } catch (const Json::exception& e) {
    throw FormatError(
        fmt::format("[train.health] no state of this kind: {}", e.what())
    );
  }
}

}  // namespace hearth::train
