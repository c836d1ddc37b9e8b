#include "hearth/train/health.h"

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
  v("enabled", enabled, "skip steps whose loss or gradient norm jumps");
  v("window", window, "good steps that a new one is held against",
    between(4, 100000));
  v("least", least, "good steps before any is judged", at_least(4));
  v("z", z, "robust deviations above the median that are a spike", positive());
  v("in_a_row", in_a_row, "bad steps in a row that roll back", at_least(1));
  v("roll_backs", roll_backs, "roll-backs before the run stops", at_least(0));
  v("lr_factor", lr_factor, "rate after a roll-back, as a share",
    between(0.001, 1));
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

Health::Complaint Health::complaint(double loss, double gradient_norm) const {
  if (!std::isfinite(loss)) return {"the loss is " + not_finite(loss)};
  if (!std::isfinite(gradient_norm)) {
    return {"the gradient norm is " + not_finite(gradient_norm)};
  }
  if (known(losses_)) {
    const auto [middle, deviation] = spread_of(losses_);
    const double z = (loss - middle) /
                     std::max({deviation, kLossFloor * std::abs(middle), 1e-9});
    if (z > config_.z) {
      return {fmt::format(
          "the loss {:.4g} is {:.1f} deviations above {:.4g}, the median of {} "
          "steps",
          loss, z, middle, losses_.size()
      )};
    }
  }
  if (!known(norms_)) return {};
  const auto [middle, deviation] = spread_of(norms_);
  const double z =
      (log_norm(gradient_norm) - middle) / std::max(deviation, kNormFloor);
  if (z <= config_.z) return {};
  return {
      fmt::format(
          "the gradient norm {:.4g} is {:.1f} deviations above {:.4g}, the "
          "median of {} steps",
          gradient_norm, z, std::exp(middle), norms_.size()
      ),
      true
  };
}

void Health::note_good(double loss, double gradient_norm) {
  push(losses_, loss, config_.window);
  push(norms_, log_norm(gradient_norm), config_.window);
  bad_in_a_row_ = trouble_ = norms_in_a_row_ = 0;
  // A roll-back that four windows have passed since is no longer "again".
  if (++good_since_roll_back_ >= 4 * config_.window) roll_backs_ = 0;
}

HealthVerdict Health::judge(long step, double loss, double gradient_norm) {
  const auto [what, norm_alone] = complaint(loss, gradient_norm);
  // Weights that skipped steps leave as they are keep their steep gradient: a
  // norm that stays high beside a loss that does not is what is usual now.
  norms_in_a_row_ = norm_alone ? norms_in_a_row_ + 1 : 0;
  const bool usual = norms_in_a_row_ >= config_.in_a_row;
  if (usual) norms_.clear();
  if (usual || what.empty()) {
    note_good(loss, gradient_norm);
    return {};
  }
  const std::string reason = fmt::format("step {}: {}", step, what);
  if (bad_in_a_row_ == 0) trouble_ = step;
  const long since = trouble_;
  if (++bad_in_a_row_ < config_.in_a_row) {
    return {HealthAction::skip, reason, since};
  }
  const long bad = bad_in_a_row_;
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
  bad_in_a_row_ = trouble_ = 0;
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

Json Health::state() const {
  return {
      {"losses", losses_},
      {"norms", norms_},
      {"bad_in_a_row", bad_in_a_row_},
      {"trouble", trouble_},
      {"norms_in_a_row", norms_in_a_row_},
      {"roll_backs", roll_backs_},
      {"good_since_roll_back", good_since_roll_back_},
      {"lr_factor", lr_factor_}
  };
}

void Health::restore(const Json& state) {
  try {
    Health read(config_);
    for (const double v : state.at("losses")) {
      push(read.losses_, v, config_.window);
    }
    for (const double v : state.at("norms")) {
      push(read.norms_, v, config_.window);
    }
    read.bad_in_a_row_ = state.at("bad_in_a_row").get<long>();
    read.trouble_ = state.value("trouble", 0L);
    read.norms_in_a_row_ = state.value("norms_in_a_row", 0L);
    read.roll_backs_ = state.at("roll_backs").get<long>();
    read.good_since_roll_back_ = state.at("good_since_roll_back").get<long>();
    read.lr_factor_ = state.at("lr_factor").get<double>();
    if (read.trouble_ == 0) read.bad_in_a_row_ = 0;
    if (read.losses_.size() < read.norms_.size() || !(read.lr_factor_ > 0)) {
      throw FormatError("[train.health] its parts do not fit together");
    }
    *this = std::move(read);
  } catch (const Json::exception& e) {
    throw FormatError(
        fmt::format("[train.health] no state of this kind: {}", e.what())
    );
  }
}

}  // namespace hearth::train
