#include "hearth/io/gguf_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace hearth::io {
namespace {

// Cycles per position of frequency i of n: 1 / wavelength.
double cycles(std::size_t i, std::size_t n, double theta) {
  const double power = static_cast<double>(i) / static_cast<double>(n);
  return std::pow(theta, -power) / (2 * std::numbers::pi);
}

bool reproduces(
    const Llama3Rope& rope,
    std::span<const float> factors,
    double theta
) {
  const double low = rope.low_freq_factor, high = rope.high_freq_factor;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double x = rope.original_context * cycles(i, factors.size(), theta);
    const double smooth = std::clamp((x - low) / (high - low), 0.0, 1.0);
    const double wanted = 1 / ((1 - smooth) / rope.factor + smooth);
    if (!(std::abs(factors[i] / wanted - 1) < 1e-3)) return false;
  }
  return true;
}

// The values of x between which the factor falls from its largest to 1.
struct Ramp {
  double begin = 0, end = 0;
};

Ramp find_ramp(std::span<const float> factors, double factor, double theta) {
  const std::size_t n = factors.size();
  std::vector<std::pair<double, double>> inside;  // x, smooth
  std::size_t ones = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double smooth = (1 / factors[i] - 1 / factor) / (1 - 1 / factor);
    if (smooth > 1 - 1e-5) ++ones;
    if (smooth > 1e-5 && smooth < 1 - 1e-5) {
      inside.emplace_back(cycles(i, n, theta), smooth);
    }
  }
  if (inside.size() >= 2) {
    const auto [x1, s1] = inside.front();
    const auto [x2, s2] = inside.back();
    const double slope = (s2 - s1) / (x2 - x1);
    return {x1 - s1 / slope, x1 + (1 - s1) / slope};
  }
  if (inside.size() == 1) {
    // The usual ramp, whose end is four times its begin, through this point.
    const auto [x, smooth] = inside.front();
    const double begin = x / (1 + 3 * smooth);
    return {begin, 4 * begin};
  }
  // No frequency on the ramp: any ramp between the two sides will do.
  const double above = cycles(ones == 0 ? 0 : ones - 1, n, theta);
  const double below = cycles(std::min(ones, n - 1), n, theta);
  const double step = (above - below) / 3;
  return {below + step, above - step};
}

double rounded(double value) {
  const double whole = std::round(value);
  return std::abs(value - whole) < 1e-2 * std::abs(value) ? whole : value;
}

}  // namespace

std::optional<Llama3Rope> llama3_rope(
    std::span<const float> factors,
    double theta
) {
  if (factors.empty() || !(theta > 1)) return std::nullopt;
  const double factor = *std::max_element(factors.begin(), factors.end());
  if (!std::isfinite(factor) || !(factor > 1)) return std::nullopt;
  const Ramp ramp = find_ramp(factors, factor, theta);
  if (!(ramp.begin > 0) || !(ramp.end > ramp.begin)) return std::nullopt;
  // Only the ratios matter; the low factor is 1 wherever it was published.
  const double context = std::round(1 / ramp.begin);
  Llama3Rope tidy{factor, 1, rounded(ramp.end / ramp.begin), context};
  // Contexts are powers of two; the fit is a little off.
  const double power = std::exp2(std::round(std::log2(context)));
  if (std::abs(power / context - 1) < 1e-2) tidy.original_context = power;
  if (reproduces(tidy, factors, theta)) return tidy;
  const Llama3Rope exact{
      factor, ramp.begin * context, ramp.end * context, context
  };
  if (reproduces(exact, factors, theta)) return exact;
  return std::nullopt;
}

}  // namespace hearth::io
