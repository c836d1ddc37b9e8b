// The seven units and the kinds of alpha, against their formulas in double.
#include "hearth/nn/gate.h"

#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"
#include "hearth/nn/init.h"
#include "hearth/nn/mlp.h"

namespace hearth::nn {
namespace {

double sigmoid(double z) {
  return 1 / (1 + std::exp(-z));
}

using Function = std::function<double(double)>;

// act(z) of each unit, as its paper has it.
const std::map<std::string, Function>& units() {
  static const std::map<std::string, Function> all{
      {"glu", sigmoid},
      {"gtu", [](double z) { return std::tanh(z); }},
      {"swish", [](double z) { return z * sigmoid(z); }},
      {"silu", [](double z) { return z * sigmoid(z); }},
      {"reglu", [](double z) { return std::max(z, 0.0); }},
      {"gelu",
       [](double z) { return 0.5 * z * (1 + std::erf(z / std::sqrt(2.0))); }},
      {"mish", [](double z) { return z * std::tanh(std::log1p(std::exp(z))); }},
  };
  return all;
}

std::vector<float> noise(std::size_t n, std::uint64_t seed) {
  RandomStream random{RandomKey(seed)};
  std::vector<float> out(n);
  for (float& v : out) v = static_cast<float>(2 * random.normal());
  return out;
}

// Runs the gate on 2 rows of 24 and compares with the formula for that alpha.
void expect_gate(const Gate& gate, const Function& act, double alpha) {
  const bool gtu = gate.config().unit == "gtu";
  const auto v = noise(48, 1), g = noise(48, 2), x = noise(48, 3);
  auto got = gate(
      mx::array(v.data(), {2, 24}), mx::array(g.data(), {2, 24}),
      mx::array(x.data(), {2, 24})
  );
  got.eval();
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double value = gtu ? std::tanh(v[i]) : v[i];
    const double want = value * (alpha * act(g[i]) + 1 - alpha);
    EXPECT_NEAR(got.data<float>()[i], want, 2e-5 * (1 + std::abs(want)))
        << gate.config().unit << " alpha " << alpha << " at " << i;
  }
}

Gate make(ParameterSet& set, const GateConfig& config) {
  config.check();
  if (config.alpha == "learnable") {
    set.add(
        {.name = "mlp.gate_alpha",
         .shape = {1},
         .init = Init::constant,
         .constant = static_cast<float>(config.alpha_start()),
         .part = {io::Role::gate_alpha, 0}}
    );
  }
  if (config.learn_beta) {
    set.add(
        {.name = "mlp.gate_beta",
         .shape = {1},
         .init = Init::constant,
         .constant = static_cast<float>(config.beta),
         .part = {io::Role::gate_beta, 0}}
    );
  }
  Gate gate(set, 0, config);
  for (Weight* p : set.all()) initialize(*p, 1, 1);
  return gate;
}

TEST(Gate, EveryUnitWithAFixedAlpha) {
  for (const auto& [unit, act] : units()) {
    for (const double alpha : {0.0, 0.3, 1.0}) {
      ParameterSet set;
      expect_gate(make(set, {.unit = unit, .value = alpha}), act, alpha);
    }
  }
}

TEST(Gate, ALearntAlphaStartsWhereItIsTold) {
  for (const auto& [unit, act] : units()) {
    ParameterSet set;
    const GateConfig config{.unit = unit, .alpha = "learnable", .value = 0.7};
    expect_gate(make(set, config), act, 0.7);
    EXPECT_EQ(set.count(), 1u);
  }
}

TEST(Gate, SchedulesGoFromEndToEnd) {
  GateConfig c{.alpha = "linear", .low = 0.2, .high = 0.8, .steps = 10};
  EXPECT_DOUBLE_EQ(scheduled_alpha(c, 0), 0.2);
  EXPECT_NEAR(scheduled_alpha(c, 5), 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(scheduled_alpha(c, 10), 0.8);
  EXPECT_DOUBLE_EQ(scheduled_alpha(c, 99), 0.8);
  c.alpha = "cosine";
  EXPECT_DOUBLE_EQ(scheduled_alpha(c, 0), 0.8);
  EXPECT_NEAR(
      scheduled_alpha(c, 3),
      0.2 + 0.6 * 0.5 * (1 + std::cos(0.3 * std::numbers::pi)), 1e-12
  );
  EXPECT_NEAR(scheduled_alpha(c, 10), 0.2, 1e-12);
  c.reverse = true;
  EXPECT_NEAR(scheduled_alpha(c, 0), 0.2, 1e-12);
  EXPECT_NEAR(scheduled_alpha(c, 10), 0.8, 1e-12);
}

TEST(Gate, AScheduledAlphaMovesWithTheStep) {
  for (const char* kind : {"linear", "cosine"}) {
    ParameterSet set;
    const GateConfig c{.unit = "glu", .alpha = kind, .low = 0.1, .steps = 8};
    Gate gate = make(set, c);
    for (const int step : {0, 3, 8, 20}) {
      gate.set_step(step);
      expect_gate(gate, sigmoid, scheduled_alpha(c, step));
    }
  }
}

TEST(Gate, AModelIsLoadedWhereItsScheduleStands) {
  ParameterSet set;
  const GateConfig c{.unit = "glu", .alpha = "linear", .steps = 8, .step = 6};
  expect_gate(make(set, c), sigmoid, 0.75);
}

// alpha of the input: entropy of its softmax over the width, or one minus the
// largest probability; the mean over tokens, scaled and limited.
double input_alpha(const GateConfig& c) {
  const auto x = noise(48, 3);
  double sum = 0;
  for (int row = 0; row < 2; ++row) {
    double total = 0, entropy = 0, largest = 0;
    for (int i = 0; i < 24; ++i) {
      total +=
          std::exp(x[static_cast<std::size_t>(24 * row + i)] / c.temperature);
    }
    for (int i = 0; i < 24; ++i) {
      const double p =
          std::exp(x[static_cast<std::size_t>(24 * row + i)] / c.temperature) /
          total;
      entropy -= p * std::log(p);
      largest = std::max(largest, p);
    }
    sum += c.alpha == "entropy" ? entropy / std::log(24.0) : 1 - largest;
  }
  return std::clamp(c.scale * sum / 2, c.low, c.high);
}

TEST(Gate, EntropyAndConfidenceReadTheInput) {
  for (const char* kind : {"entropy", "confidence"}) {
    for (const double scale : {0.4, 1.0, 9.0}) {
      ParameterSet set;
      const GateConfig c{
          .unit = "gelu",
          .alpha = kind,
          .low = 0.05,
          .high = 0.9,
          .scale = scale,
          .temperature = 1.7
      };
      expect_gate(make(set, c), units().at("gelu"), input_alpha(c));
    }
  }
}

TEST(Gate, SwishHasItsBetaFixedOrLearnt) {
  const auto act = [](double z) { return z * sigmoid(1.5 * z); };
  for (const bool learn : {false, true}) {
    ParameterSet set;
    const GateConfig c{
        .unit = "swish", .value = 0.6, .beta = 1.5, .learn_beta = learn
    };
    expect_gate(make(set, c), act, 0.6);
    EXPECT_EQ(set.count(), learn ? 1u : 0u);
  }
}

TEST(Gate, OnlySwishLearnsABeta) {
  ParameterSet set;
  EXPECT_THROW(Gate(set, 0, {.unit = "gelu", .learn_beta = true}), UsageError);
}

TEST(Mlp, EqualParametersAreWithinOneTileOfAPlainMlps) {
  for (const int ffn : {64, 96, 352, 1024, 3072}) {
    const int width = equal_parameter_width(ffn);
    EXPECT_EQ(width % 8, 0);
    EXPECT_LE(std::abs(3 * width - 2 * ffn), 3 * 4 + 2) << ffn;
  }
}

}  // namespace
}  // namespace hearth::nn
