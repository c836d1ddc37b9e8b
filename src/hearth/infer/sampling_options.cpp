#include "hearth/infer/sampling_options.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::infer {
namespace {

constexpr double kMost = std::numeric_limits<double>::max();

constexpr SamplingRange kShare{0, 1, true, "must be in (0, 1]"};
constexpr SamplingRange kPart{0, 1, false, "must be in [0, 1]"};
constexpr SamplingRange kNotNegative{0, kMost, false, "must be 0 or more"};
constexpr SamplingRange kPositive{0, kMost, true, "must be more than 0"};
constexpr SamplingRange kAny{-kMost, kMost, false, "must be a number"};

}  // namespace

bool SamplingRange::holds(double value) const {
  return (above ? value > least : value >= least) && value <= most;
}

std::span<const SamplingField> sampling_fields() {
  using S = SamplerOptions;
  static const SamplingField fields[] = {
      {"temperature", "--temp", "temperature", &S::temperature, kNotNegative, 0,
       2, false, true, "Temperature; 0 takes the most likely token"},
      {"top_k", "--top-k", "top_k", &S::top_k, kNotNegative, 0, INT32_MAX, true,
       true, "Only the k most likely tokens; 0: all"},
      {"top_p", "--top-p", "top_p", &S::top_p, kShare, 0, 1, true, true,
       "Only the likeliest tokens that hold this probability"},
      {"typical_p", "--typical-p", "typical_p", &S::typical_p, kShare, 0, 1,
       true, false, "Only tokens of usual surprise that hold this probability"},
      {"min_p", "--min-p", "min_p", &S::min_p, kPart, 0, 1, true, true,
       "Only tokens this likely beside the most likely"},
      {"repeat_penalty", "--repeat-penalty", "repetition_penalty",
       &S::repeat_penalty, kPositive, 0.01, 10, false, false,
       "Above 1 makes tokens of the prompt and the text so far less likely"},
      {"frequency_penalty", "--frequency-penalty", "frequency_penalty",
       &S::frequency_penalty, kAny, -2, 2, false, false,
       "Off a token's logit for each time it was made"},
      {"presence_penalty", "--presence-penalty", "presence_penalty",
       &S::presence_penalty, kAny, -2, 2, false, false,
       "Off a token's logit once it was made"},
  };
  return fields;
}

double SamplingField::get(const SamplerOptions& options) const {
  return std::visit(
      [&](auto at) { return static_cast<double>(options.*at); }, member
  );
}

void SamplingField::set(SamplerOptions& options, double value) const {
  if (const auto* at = std::get_if<int SamplerOptions::*>(&member)) {
    options.*(*at) = static_cast<int>(value);
  } else {
    options.*std::get<0>(member) = value;
  }
}

std::optional<SamplerFault> SamplerOptions::fault() const {
  for (const SamplingField& field : sampling_fields()) {
    const double value = field.get(*this);
    if (field.range.holds(value)) continue;
    return SamplerFault{&field, value};
  }
  return std::nullopt;
}

void SamplerOptions::check() const {
  if (const auto f = fault()) {
    throw UsageError(
        fmt::format(
            "[infer.sampler] {} {}, got {}", f->field->name,
            f->field->range.must, f->got
        )
    );
  }
}

GivenSampling::GivenSampling() : values_(sampling_fields().size()) {}

bool GivenSampling::gave(std::string_view name) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (name == sampling_fields()[i].name) return values_[i].has_value();
  }
  return false;
}

void GivenSampling::apply(SamplerOptions& options) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i]) sampling_fields()[i].set(options, *values_[i]);
  }
}

}  // namespace hearth::infer
