// Layer norm of rows that a variance in one pass could spoil: a mean far from
// zero, and an element that dwarfs the others where the pass looks first.
#include "hearth/kernels/norm.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/random.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

std::vector<double> expected(const std::vector<float>& x, double eps) {
  double mean = 0, variance = 0;
  const auto n = static_cast<double>(x.size());
  for (const float v : x) mean += double{v} / n;
  for (const float v : x)
    variance += (double{v} - mean) * (double{v} - mean) / n;
  std::vector<double> y;
  for (const float v : x) {
    y.push_back((double{v} - mean) / std::sqrt(variance + eps));
  }
  return y;
}

void expect_near_definition(const std::vector<float>& x, const char* what) {
  constexpr float kEps = 1e-5f;
  const auto want = expected(x, double{kEps});
  for (const Table* table : usable_tables()) {
    std::vector<float> y(x.size());
    NormArgs<float, float> a{};
    a.dim = static_cast<long>(x.size()), a.eps = kEps;
    a.x = x.data(), a.y = y.data();
    table->norm->f32.layer.forward(a, 0, 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(double{y[i]}, want[i], 2e-4 * (1 + std::abs(want[i])))
          << table->isa << ", " << what << ", element " << i;
    }
  }
}

std::vector<float> row(double mean) {
  RandomStream random{RandomKey(5)};
  std::vector<float> x;
  for (int i = 0; i < 1023; ++i) {
    x.push_back(static_cast<float>(random.normal() + mean));
  }
  return x;
}

TEST(LayerNorm, FarFromZero) {
  expect_near_definition(row(0), "mean 0");
  expect_near_definition(row(300), "mean 300");
}

TEST(LayerNorm, WithAnOutlier) {
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{20}, std::size_t{900}}) {
    auto x = row(1);
    x[at] = 1000;
    expect_near_definition(x, "an outlier of 1,000");
  }
}

TEST(LayerNorm, OfEqualElements) {
  expect_near_definition(std::vector<float>(70, 3.0f), "all equal");
  expect_near_definition(std::vector<float>(1, -2.0f), "one element");
}

}  // namespace
}  // namespace hearth::kernels
