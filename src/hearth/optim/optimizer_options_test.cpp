// Every option of an optimiser moves what it says: values other than the
// defaults, against plain double arithmetic.
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"
#include "hearth/optim/optimizer.h"
#include "hearth/optim/optimizer_reference_test.h"

namespace hearth::optim {
namespace {

constexpr double kRate = 0.01;
constexpr long kStepsMade = 12;

struct Ends {
  std::vector<double> got, want;

  double apart() const {
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::abs(got[i] - want[i]));
    }
    return worst;
  }
};

// Gradients of a few sizes in one matrix, so that eps and clipping are seen.
mx::array uneven_gradient(const mx::Shape& shape, long step) {
  auto g =
      ops::normal_input(shape, mx::float32, static_cast<std::uint64_t>(step));
  g.eval();
  for (std::size_t i = 0; i < g.size(); ++i) {
    g.data<float>()[i] *= i % 7 == 0 ? 3.0f : 0.02f;
  }
  return g;
}

// Where the optimiser brings a matrix, and where the arithmetic does.
Ends ends_of(const OptimConfig& config) {
  mx::set_default_device(mx::Device::cpu);
  const mx::Shape shape = {24, 40};
  nn::ParameterSet set;
  nn::Weight& p = set.add({.name = "model.w.weight", .shape = shape});
  auto leaf = ops::make_leaf(shape, mx::float32, state_zone());
  const auto start = ops::normal_input(shape, mx::float32, 3);
  std::copy_n(start.data<float>(), start.size(), leaf.data<float>());
  p.set(leaf);
  Ends ends;
  ends.want.assign(start.data<float>(), start.data<float>() + start.size());
  auto rule = reference_rule(config, p);
  auto optimizer = Optimizer::make(config, set.all());
  for (long step = 1; step <= kStepsMade; ++step) {
    const auto g = uneven_gradient(shape, step);
    optimizer->step(std::vector{g}, 1, kRate);
    rule(
        ends.want, {g.data<float>(), g.data<float>() + g.size()}, step, kRate,
        config.weight_decay
    );
  }
  const float* w = p.value().data<float>();
  ends.got.assign(w, w + p.value().size());
  return ends;
}

double far(const Ends& a, const Ends& b) {
  return Ends{a.got, b.got}.apart();
}

// The option is followed, and the arithmetic tells it from the default.
void expect_followed(const OptimConfig& with, const OptimConfig& plain) {
  const Ends ends = ends_of(with);
  EXPECT_LT(ends.apart(), 2e-5);
  EXPECT_GT(far(ends, ends_of(plain)), 1e-3) << "the option changes nothing";
}

TEST(OptimizerOptions, EpsOfAdamW) {
  OptimConfig plain, with;
  with.eps = 0.05;
  expect_followed(with, plain);
}

TEST(OptimizerOptions, EpsOfEightBitAdamW) {
  OptimConfig plain{.name = "adamw8bit"}, with{.name = "adamw8bit"};
  with.eps = 0.05;
  // Its codes round; what a small eps would do is far beyond that.
  const Ends ends = ends_of(with);
  EXPECT_LT(ends.apart(), 0.02 * kRate * kStepsMade);
  EXPECT_GT(far(ends, ends_of(plain)), 0.2 * kRate * kStepsMade);
}

TEST(OptimizerOptions, BetasOfAdamWAndLion) {
  for (const char* name : {"adamw", "lion"}) {
    SCOPED_TRACE(name);
    OptimConfig plain{.name = name}, with{.name = name};
    with.betas = {0.6, 0.8};
    expect_followed(with, plain);
  }
}

TEST(OptimizerOptions, ClipOfAdafactor) {
  OptimConfig plain{.name = "adafactor"}, with{.name = "adafactor"};
  with.adafactor.clip = 0.3;
  expect_followed(with, plain);
}

TEST(OptimizerOptions, DecayRateOfAdafactor) {
  OptimConfig plain{.name = "adafactor"}, with{.name = "adafactor"};
  with.adafactor.decay_rate = 0.3;
  expect_followed(with, plain);
}

TEST(OptimizerOptions, MomentumAndScaleOfAdafactor) {
  OptimConfig plain{.name = "adafactor"}, with{.name = "adafactor"};
  with.adafactor.momentum = 0.7;
  expect_followed(with, plain);
  with = plain;
  with.adafactor.scale_by_size = true;
  with.weight_decay = 0;
  plain.weight_decay = 0;
  const Ends ends = ends_of(with);
  EXPECT_LT(ends.apart(), 2e-5);
  EXPECT_GT(far(ends, ends_of(plain)), 1e-5);
}

OptimConfig exact_muon() {
  OptimConfig c{.name = "muon"};
  c.muon.precision = "fp32";
  return c;
}

TEST(OptimizerOptions, StepsOfMuon) {
  OptimConfig with = exact_muon();
  with.muon.steps = 2;
  expect_followed(with, exact_muon());
}

TEST(OptimizerOptions, NesterovOfMuon) {
  OptimConfig with = exact_muon();
  with.muon.nesterov = false;
  expect_followed(with, exact_muon());
}

TEST(OptimizerOptions, MomentumAndRmsOfMuon) {
  OptimConfig with = exact_muon();
  with.muon.momentum = 0.5;
  expect_followed(with, exact_muon());
  with = exact_muon();
  with.muon.rms = 0.4;
  expect_followed(with, exact_muon());
}

// Products of 8 bits leave a trace that those of 24 do not.
TEST(OptimizerOptions, PrecisionOfMuon) {
  OptimConfig rounded = exact_muon();
  rounded.muon.precision = "bf16";
  EXPECT_LT(ends_of(exact_muon()).apart(), 2e-5);
  EXPECT_GT(ends_of(rounded).apart(), 2e-4);
}

// Tables in Llama's files and in GPT-2's: by their role, whatever their name.
TEST(OptimizerOptions, TablesOfEveryFamilyAreKnown) {
  mx::set_default_device(mx::Device::cpu);
  nn::ParameterSet set;
  for (const char* name :
       {"model.embed_tokens.weight", "transformer.wte.weight",
        "transformer.wpe.weight", "transformer.h.0.mlp.c_fc.weight"}) {
    nn::Weight& p =
        set.add({.name = name, .shape = {16, 8}, .part = io::role_of(name)});
    p.set(ops::make_leaf(p.shape, mx::float32, state_zone()));
  }
  using Decays = std::vector<double>;
  EXPECT_EQ(
      Optimizer::make({.decay_embeddings = false}, set.all())->decays(),
      (Decays{0, 0, 0, 0.1})
  );
  // Tables are AdamW's, with two numbers an element; Muon has one.
  const std::size_t table = 16 * 8 * sizeof(float);
  EXPECT_EQ(
      Optimizer::make({.name = "muon"}, set.all())->state_bytes(),
      3 * 2 * table + table
  );
}

}  // namespace
}  // namespace hearth::optim
