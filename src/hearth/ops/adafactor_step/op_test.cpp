// Adafactor against steps that transformers made, and what a golden file cannot
// say: bf16 gradients, copies, thread counts, refusals.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"
#include "hearth/ops/adafactor_step/faces_impl.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

MemoryZone zone() {
  return MemoryZone::named("adafactor test");
}

mx::array leaf_of(const mx::Shape& shape, const std::vector<float>& values) {
  auto a = make_leaf(shape, mx::float32, zone());
  std::memcpy(a.data<float>(), values.data(), values.size() * sizeof(float));
  return a;
}

struct Golden {
  Adafactor hyper;
  mx::Shape shape;
  std::vector<float> start, end;
  std::vector<std::vector<float>> gradients;
};

std::vector<Golden> goldens() {
  std::vector<Golden> out;
  const Json file =
      read_json_file(HEARTH_SOURCE_DIR "/tests/golden/adafactor.json");
  for (const Json& c : file.at("cases")) {
    Golden g;
    g.hyper.lr = c.at("lr").get<float>();
    g.hyper.beta1 = c.value("beta1", 0.0f);
    g.hyper.decay = c.value("decay", 0.0f);
    g.hyper.clip = c.value("clip", 1.0f);
    g.hyper.scale_by_size = c.value("scale_by_size", false);
    g.shape = c.at("shape").get<mx::Shape>();
    c.at("start").get_to(g.start);
    c.at("end").get_to(g.end);
    c.at("gradients").get_to(g.gradients);
    out.push_back(g);
  }
  return out;
}

void expect_end(const mx::array& w, const Golden& golden) {
  const auto& end = golden.end;
  for (std::size_t i = 0; i < end.size(); ++i) {
    ASSERT_NEAR(w.data<float>()[i], end[i], 2e-6f + 2e-5f * std::abs(end[i]))
        << i;
  }
}

class AdafactorStep : public testing::TestWithParam<const kernels::Table*> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

TEST_P(AdafactorStep, MatchesTransformers) {
  const ScopedExecution forced(*GetParam());
  for (const Golden& c : goldens()) {
    SCOPED_TRACE(testing::PrintToString(c.shape));
    auto w = leaf_of(c.shape, c.start);
    auto state = make_adafactor_state(c.shape, c.hyper.beta1 != 0, zone());
    long step = 0;
    for (auto g : c.gradients) {
      for (float& v : g) v *= 4;
      adafactor_step(
          c.hyper, ++step,
          {.weight = w,
           .gradient = leaf_of(c.shape, g),
           .gradient_scale = 0.25f},
          state
      );
    }
    expect_end(w, c);
  }
}

TEST(AdafactorDefinition, MatchesTransformers) {
  mx::set_default_device(mx::Device::cpu);
  for (const Golden& c : goldens()) {
    SCOPED_TRACE(testing::PrintToString(c.shape));
    const bool momentum = c.hyper.beta1 != 0;
    const auto state = make_adafactor_state(c.shape, momentum, zone());
    Arrays now{leaf_of(c.shape, c.start), state.rows, state.columns};
    if (momentum) now.push_back(*state.m);
    long step = 0;
    for (const auto& g : c.gradients) {
      now = adafactor_step_reference(
          c.hyper,
          {.before = now, .gradient = leaf_of(c.shape, g), .step = ++step}
      );
      mx::eval(now);
    }
    expect_end(now[0], c);
  }
}

TEST_P(AdafactorStep, SameBitsForAnyThreadCountAndCopyRefreshed) {
  const auto start = normal_input({600, 70}, mx::float32, 1);
  const auto gradient = normal_input({600, 70}, mx::bfloat16, 2);
  mx::eval(start, gradient);
  const Adafactor h{.lr = 0.01f, .beta1 = 0.9f, .scale_by_size = true};
  const auto run = [&](int threads, mx::array& copy) {
    ThreadPool pool(threads);
    const ScopedExecution forced(*GetParam(), &pool);
    const std::vector<float> values(
        start.data<float>(), start.data<float>() + start.size()
    );
    auto w = leaf_of({600, 70}, values);
    auto state = make_adafactor_state({600, 70}, true, zone());
    Parameter p{.weight = w, .gradient = gradient, .copy = copy};
    p.grain = 512;
    for (long step = 1; step <= 3; ++step) adafactor_step(h, step, p, state);
    return w;
  };
  auto copy = make_leaf({600, 70}, mx::bfloat16, zone());
  auto other = make_leaf({600, 70}, mx::bfloat16, zone());
  const auto one = run(1, copy), three = run(3, other);
  EXPECT_EQ(
      std::memcmp(one.data<float>(), three.data<float>(), one.nbytes()), 0
  );
  const auto rounded = mx::astype(one, mx::bfloat16);
  EXPECT_TRUE(mx::array_equal(rounded, copy).item<bool>());
  EXPECT_FALSE(mx::array_equal(one, start).item<bool>());
}

TEST_P(AdafactorStep, RefusesStatesThatDoNotFit) {
  const auto w = make_leaf({4, 6}, mx::float32, zone());
  const Parameter p{.weight = w, .gradient = w};
  auto state = make_adafactor_state({6, 4}, false, zone());
  EXPECT_THROW(adafactor_step({}, 1, p, state), UsageError);
  auto right = make_adafactor_state({4, 6}, false, zone());
  EXPECT_THROW(adafactor_step({.beta1 = 0.9f}, 1, p, right), UsageError);
  EXPECT_NO_THROW(adafactor_step({}, 1, p, right));
}

INSTANTIATE_TEST_SUITE_P(
    Tables,
    AdafactorStep,
    testing::ValuesIn(
        kernels::usable_tables().begin(),
        kernels::usable_tables().end()
    ),
    [](const auto& table) { return std::string(table.param->isa); }
);

}  // namespace
}  // namespace hearth::ops
