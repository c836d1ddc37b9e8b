// What the cases cannot say of optimiser steps: the 8-bit states, the refresh
// hook, and Muon's orthogonalisation.
#include "hearth/ops/optimizer_step/op.h"

#include <cmath>
#include <mutex>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

class OptimizerStep : public testing::TestWithParam<const kernels::Table*> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
  MemoryZone zone_ = MemoryZone::named("optimizer test");
  mx::array leaf(int n, mx::Dtype t = mx::float32) {
    return make_leaf({n}, t, zone_);
  }
};

// After one step from zero the states are known, and each code must be the
// nearest one of its block.
TEST_P(OptimizerStep, EightBitStatesAreTheNearestCodes) {
  const ScopedExecution forced(*GetParam());
  const int n = 700;  // three blocks, the last one short
  const auto g = normal_input({n}, mx::float32, 8);
  auto state = make_adamw8_state(n, zone_);
  const AdamW h;
  adamw8_step(h, 1, {.weight = leaf(n), .gradient = g}, state);
  for (int b = 0; b < 3; ++b) {
    double m_top = 0, v_top = 0;
    for (int i = 256 * b; i < std::min(n, 256 * b + 256); ++i) {
      const double x = g.data<float>()[i];
      m_top = std::max(m_top, std::abs(0.1 * x));
      v_top = std::max(v_top, 0.001 * x * x);
    }
    EXPECT_NEAR(state.m_scale.data<float>()[b], m_top, 1e-6 * m_top);
    EXPECT_NEAR(state.v_scale.data<float>()[b], v_top, 1e-4 * v_top);
    for (int i = 256 * b; i < std::min(n, 256 * b + 256); ++i) {
      const double x = g.data<float>()[i];
      const double m = 127 * std::sqrt(std::abs(0.1 * x) / m_top);
      const double v = 255 * std::pow(0.001 * x * x / v_top, 0.25);
      EXPECT_NEAR(state.m.data<std::int8_t>()[i], x < 0 ? -m : m, 0.501);
      EXPECT_NEAR(
          state.v.data<std::uint8_t>()[i], v, v > 0 && v < 0.5 ? 1.0 : 0.501
      );
    }
  }
}

// A quadratic bowl with noise: the 8-bit steps end as near its bottom as the
// float32 ones.
TEST_P(OptimizerStep, EightBitAdamWDescendsLikeFloat32) {
  const ScopedExecution forced(*GetParam());
  const int n = 1024;
  auto w32 = leaf(n), w8 = leaf(n), m = leaf(n), v = leaf(n);
  auto g32 = leaf(n), g8 = leaf(n);
  auto state = make_adamw8_state(n, zone_);
  const auto goal = normal_input({n}, mx::float32, 9);
  const auto loss = [&](mx::array& w) {
    double sum = 0;
    for (int i = 0; i < n; ++i) {
      const double d = w.data<float>()[i] - goal.data<float>()[i];
      sum += d * d;
    }
    return sum / n;
  };
  const double start = loss(w32);
  const AdamW h{0.02f, 0.9f, 0.99f, 1e-8f, 0.0f};
  for (int step = 1; step <= 200; ++step) {
    const auto noise = normal_input({n}, mx::float32, 1000 + step, 0.1f);
    for (int i = 0; i < n; ++i) {
      // Curvatures from 0.01 to 1.
      const float c = std::pow(10.0f, -2.0f * i / n);
      const float e = noise.data<float>()[i], t = goal.data<float>()[i];
      g32.data<float>()[i] = c * (w32.data<float>()[i] - t + e);
      g8.data<float>()[i] = c * (w8.data<float>()[i] - t + e);
    }
    adamw_step(h, step, {.weight = w32, .gradient = g32}, m, v);
    adamw8_step(h, step, {.weight = w8, .gradient = g8}, state);
  }
  EXPECT_LT(loss(w32), 0.02 * start);
  EXPECT_LT(loss(w8), loss(w32) + 0.005 * start);
}

// The hook sees every element once, after its update, at the grain's bounds.
TEST_P(OptimizerStep, RefreshSeesUpdatedWeights) {
  const ScopedExecution forced(*GetParam());
  const int n = 5000;
  auto w = leaf(n), m = leaf(n), v = leaf(n);
  auto g = mx::ones({n});
  g.eval();
  std::vector<int> seen(n, 0);
  std::mutex mutex;
  Parameter p{.weight = w, .gradient = g};
  p.grain = 512;
  p.refresh = [&](const Execution&, std::size_t begin, std::size_t end) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(begin % 512, 0u);
    for (std::size_t i = begin; i < end; ++i) {
      ++seen[i];
      EXPECT_LT(w.data<float>()[i], 0.0f);
    }
  };
  adamw_step({}, 1, p, m, v);
  for (int count : seen) EXPECT_EQ(count, 1);
  p.grain = 100;
  EXPECT_THROW(adamw_step({}, 1, p, m, v), UsageError);
  auto small = leaf(3);
  EXPECT_THROW(
      adamw_step({}, 1, {.weight = w, .gradient = g}, small, v), UsageError
  );
}

// The columns (or rows) of the result are near orthonormal and span what x did.
TEST_P(OptimizerStep, OrthogonalizeMakesSingularValuesNearOne) {
  const ScopedExecution forced(*GetParam());
  const auto product = [](const mx::array& a, const mx::array& b) {
    return mx::matmul(a, mx::transpose(b));
  };
  for (const mx::Shape& shape : {mx::Shape{24, 40}, mx::Shape{40, 24}}) {
    const auto x = normal_input(shape, mx::float32, 12);
    const auto y = orthogonalize(x, 8, product);
    EXPECT_EQ(y.shape(), shape);
    auto values = mx::linalg::svd(y, false, mx::Device::cpu)[0];
    values.eval();
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_GT(values.data<float>()[i], 0.6f);
      EXPECT_LT(values.data<float>()[i], 1.3f);
    }
    // x = U S V^T: <x, y> is the sum of s times values near 1.
    const float inner = mx::sum(mx::multiply(x, y)).item<float>();
    auto s = mx::linalg::svd(x, false, mx::Device::cpu)[0];
    const float nuclear = mx::sum(s).item<float>();
    EXPECT_GT(inner, 0.7f * nuclear);
    EXPECT_LT(inner, 1.25f * nuclear);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tables,
    OptimizerStep,
    testing::ValuesIn(
        kernels::usable_tables().begin(),
        kernels::usable_tables().end()
    ),
    [](const auto& table) { return std::string(table.param->isa); }
);

}  // namespace
}  // namespace hearth::ops
