// Adafactor against steps that transformers made, and what a golden file cannot
// say: bf16 gradients, copies, thread counts, refusals.
#include "hearth/ops/adafactor_step/op.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"
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

class AdafactorStep : public testing::TestWithParam<const kernels::Table*> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

TEST_P(AdafactorStep, MatchesTransformers) {
  const ScopedExecution forced(*GetParam());
  const Json golden =
      read_json_file(HEARTH_SOURCE_DIR "/tests/golden/adafactor.json");
  for (const Json& c : golden.at("cases")) {
    const auto shape = c.at("shape").get<mx::Shape>();
    SCOPED_TRACE(c.at("shape").dump());
    Adafactor h;
    h.lr = c.at("lr").get<float>();
    h.beta1 = c.value("beta1", 0.0f);
    h.decay = c.value("decay", 0.0f);
    h.clip = c.value("clip", 1.0f);
    h.scale_by_size = c.value("scale_by_size", false);
    auto w = leaf_of(shape, c.at("start").get<std::vector<float>>());
    auto state = make_adafactor_state(shape, h.beta1 != 0, zone());
    long step = 0;
    for (const Json& g : c.at("gradients")) {
      auto values = g.get<std::vector<float>>();
      for (float& v : values) v *= 4;
      adafactor_step(
          h, ++step,
          {.weight = w,
           .gradient = leaf_of(shape, values),
           .gradient_scale = 0.25f},
          state
      );
    }
    const auto end = c.at("end").get<std::vector<float>>();
    for (std::size_t i = 0; i < end.size(); ++i) {
      ASSERT_NEAR(w.data<float>()[i], end[i], 2e-6f + 2e-5f * std::abs(end[i]))
          << i;
    }
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
