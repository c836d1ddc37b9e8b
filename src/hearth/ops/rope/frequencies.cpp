#include "hearth/ops/rope/frequencies.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/leaf.h"

namespace hearth::ops {
namespace {

void check(const RopeConfig& c) {
  const auto require = [](bool holds, std::string_view what, double got) {
    if (holds) return;
    throw UsageError(
        fmt::format("[ops.rope_frequencies] {}, got {}", what, got)
    );
  };
  require(
      c.dims > 0 && c.dims % 2 == 0, "dims must be even and positive", c.dims
  );
  require(c.base > 1, "base must be above 1", c.base);
  require(c.factor > 0, "factor must be positive", c.factor);
  if (c.scaling != RopeScaling::none && c.scaling != RopeScaling::linear) {
    require(
        c.original_length > 0, "original_length must be positive",
        c.original_length
    );
  }
  if (c.scaling == RopeScaling::llama3) {
    require(
        c.high_freq_factor > c.low_freq_factor,
        "high_freq_factor must be above low_freq_factor", c.high_freq_factor
    );
  }
}

// base^(-2i/dims)
std::vector<double> plain(int dims, double base) {
  std::vector<double> out(static_cast<std::size_t>(dims / 2));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::pow(base, -2.0 * static_cast<double>(i) / dims);
  }
  return out;
}

// The base grows with the length in use, so that the slowest pair makes no
// more than its trained share of a full rotation.
double dynamic_base(const RopeConfig& c) {
  const double length = std::max(c.length, c.original_length);
  const double stretch = c.factor * length / c.original_length - (c.factor - 1);
  return c.base * std::pow(stretch, c.dims / (c.dims - 2.0));
}

// Pairs whose wavelength is long against the trained length are slowed down by
// factor, short ones kept, with a blend between.
void scale_llama3(const RopeConfig& c, std::vector<double>& inverse) {
  for (double& f : inverse) {
    const double rotations = c.original_length * f / (2 * M_PI);
    const double blend = std::clamp(
        (rotations - c.low_freq_factor) /
            (c.high_freq_factor - c.low_freq_factor),
        0.0, 1.0
    );
    f = (1 - blend) * f / c.factor + blend * f;
  }
}

// The index of the pair that makes that many rotations over the trained length.
double yarn_index(const RopeConfig& c, double rotations) {
  return c.dims * std::log(c.original_length / (rotations * 2 * M_PI)) /
         (2 * std::log(c.base));
}

void scale_yarn(const RopeConfig& c, std::vector<double>& inverse) {
  double low = yarn_index(c, c.beta_fast), high = yarn_index(c, c.beta_slow);
  if (c.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(0.0, low), high = std::min(c.dims - 1.0, high);
  if (high == low) high += 0.001;
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double ramp =
        std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inverse[i] = ramp * inverse[i] / c.factor + (1 - ramp) * inverse[i];
  }
}

double yarn_scale(const RopeConfig& c) {
  if (c.attention_factor) return *c.attention_factor;
  const auto mscale = [&](double m) {
    return c.factor <= 1 ? 1.0 : 0.1 * m * std::log(c.factor) + 1;
  };
  if (c.mscale != 0 && c.mscale_all_dim != 0) {
    return mscale(c.mscale) / mscale(c.mscale_all_dim);
  }
  return mscale(1);
}

}  // namespace

RopeScaling rope_scaling_named(std::string_view name) {
  if (name == "default" || name == "none") return RopeScaling::none;
  if (name == "linear") return RopeScaling::linear;
  if (name == "dynamic") return RopeScaling::dynamic;
  if (name == "llama3") return RopeScaling::llama3;
  if (name == "yarn") return RopeScaling::yarn;
  throw UsageError(
      fmt::format(
          "[ops.rope_scaling_named] the rope scaling must be one of default, "
          "linear, dynamic, llama3, yarn, got '{}'",
          name
      )
  );
}

RopeFrequencies rope_frequencies(const RopeConfig& c) {
  check(c);
  const bool dynamic = c.scaling == RopeScaling::dynamic;
  RopeFrequencies out;
  out.inverse = plain(c.dims, dynamic ? dynamic_base(c) : c.base);
  switch (c.scaling) {
    case RopeScaling::none:
    case RopeScaling::dynamic:
      break;
    case RopeScaling::linear:
      for (double& f : out.inverse) f /= c.factor;
      break;
    case RopeScaling::llama3:
      scale_llama3(c, out.inverse);
      break;
    case RopeScaling::yarn:
      scale_yarn(c, out.inverse);
      out.scale = yarn_scale(c);
      break;
  }
  return out;
}

mx::array rope_table(const RopeFrequencies& f, int positions) {
  const std::size_t half = f.inverse.size();
  auto table = make_leaf(
      {positions, static_cast<int>(2 * half)}, mx::float32,
      MemoryZone::named("rope")
  );
  float* row = table.data<float>();
  for (int p = 0; p < positions; ++p, row += 2 * half) {
    for (std::size_t i = 0; i < half; ++i) {
      row[i] = static_cast<float>(f.scale * std::cos(p * f.inverse[i]));
      row[half + i] = static_cast<float>(f.scale * std::sin(p * f.inverse[i]));
    }
  }
  return table;
}

}  // namespace hearth::ops
