// The steps as graphs against the kernels' steps in place, several in a row.
#include "hearth/ops/optimizer_step/device.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

constexpr int kElements = 4099, kSteps = 3;

class DeviceStep : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }

  static mx::array leaf(mx::Dtype t = mx::float32, int n = kElements) {
    return make_leaf({n}, t, MemoryZone::named("optimizer test"));
  }
  static Parameter parameter() {
    Parameter p{.weight = leaf(), .gradient = leaf(), .gradient_scale = 0.5f};
    const auto from = normal_input({kElements}, mx::float32, 3);
    std::memcpy(p.weight.data<float>(), from.data<float>(), from.nbytes());
    p.copy = leaf(mx::bfloat16);
    return p;
  }
  static mx::array gradient(int step) {
    return normal_input(
        {kElements}, mx::bfloat16, 10 + static_cast<std::uint64_t>(step)
    );
  }
  static void expect_near(const mx::array& a, const mx::array& b) {
    mx::synchronize();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float x = a.data<float>()[i], y = b.data<float>()[i];
      ASSERT_NEAR(x, y, 2e-6 * (1 + std::abs(y))) << i;
    }
  }
  // Codes that lie between two may be rounded either way.
  template <class T>
  static void expect_codes(const mx::array& a, const mx::array& b) {
    mx::synchronize();
    int apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const int by = a.data<T>()[i] - b.data<T>()[i];
      ASSERT_LE(std::abs(by), 1) << i;
      apart += by != 0;
    }
    EXPECT_LE(apart, kElements / 100);
  }
};

// In place, with the copy, through the face that a GPU has.
TEST_F(DeviceStep, AdamWIsTheKernels) {
  const AdamW h{0.01f, 0.9f, 0.99f, 1e-8f, 0.1f};
  Parameter ours = parameter(), graph = parameter();
  auto m = leaf(), v = leaf(), m2 = leaf(), v2 = leaf();
  const mx::array held = graph.weight;  // as a model holds it
  for (int step = 1; step <= kSteps; ++step) {
    ours.gradient = graph.gradient = gradient(step);
    adamw_step(h, step, ours, m, v);
    const ScopedFace gpu(Face::gpu);
    adamw_step(h, step, graph, m2, v2);
    expect_near(held, ours.weight);
    expect_near(m2, m);
    expect_near(v2, v);
  }
  for (int i = 0; i < kElements; ++i) {
    const float x = static_cast<float>(graph.copy->data<mx::bfloat16_t>()[i]);
    ASSERT_NEAR(x, held.data<float>()[i], 0.005 * (1 + std::abs(x))) << i;
  }
}

// Every step begins with the kernels' state, so that each is compared alone: a
// code that falls the other way moves what comes after it.
TEST_F(DeviceStep, EightBitStatesAreTheKernels) {
  const AdamW h{0.01f, 0.9f, 0.99f, 1e-8f, 0.1f};
  Parameter ours = parameter();
  auto state = make_adamw8_state(kElements, MemoryZone::named("test"));
  for (int step = 1; step <= kSteps; ++step) {
    ours.gradient = gradient(step);
    const Arrays now{
        ours.weight, state.m, state.v, state.m_scale, state.v_scale
    };
    const auto scalars = step_scalars(
        {.learning_rate = double{h.lr},
         .gradient_scale = double{ours.gradient_scale},
         .beta1 = double{h.beta1},
         .beta2 = double{h.beta2},
         .step = step}
    );
    auto after = adamw8_device(h, scalars, now, ours.gradient);
    mx::eval(after);
    adamw8_step(h, step, ours, state);
    expect_near(after[0], ours.weight);
    expect_codes<std::int8_t>(after[1], state.m);
    expect_codes<std::uint8_t>(after[2], state.v);
    expect_near(after[3], state.m_scale);
    expect_near(after[4], state.v_scale);
    EXPECT_EQ(after[1].dtype(), mx::int8);
    EXPECT_EQ(after[2].dtype(), mx::uint8);
  }
}

TEST_F(DeviceStep, LionIsTheKernels) {
  const Lion h{0.01f, 0.9f, 0.99f, 0.1f};
  Parameter ours = parameter(), graph = parameter();
  auto m = leaf(), m2 = leaf();
  const mx::array held = graph.weight;
  for (int step = 1; step <= kSteps; ++step) {
    ours.gradient = graph.gradient = gradient(step);
    lion_step(h, ours, m);
    const ScopedFace gpu(Face::gpu);
    lion_step(h, graph, m2);
    expect_near(held, ours.weight);
    expect_near(m2, m);
  }
}

TEST_F(DeviceStep, LionShowsNan) {
  const auto w = mx::zeros({3}), m = mx::zeros({3});
  const auto g = mx::array({1.0f, NAN, -2.0f});
  auto after = lion_device({}, step_scalars({}), {w, m}, g);
  mx::eval(after);
  EXPECT_TRUE(std::isnan(after[0].data<float>()[1]));
  EXPECT_FALSE(std::isnan(after[0].data<float>()[2]));
}

// One compiled function serves every step: what changes comes as arrays.
TEST_F(DeviceStep, CompiledOnceItServesEveryStep) {
  const AdamW h{0.01f, 0.9f, 0.99f, 1e-8f, 0.1f};
  int traced = 0;
  const auto compiled =
      mx::compile(std::function<Arrays(const Arrays&)>([&](const Arrays& in) {
        ++traced;
        const auto scalars = StepScalars::of({in.data() + 4, 5});
        return adamw_device(h, scalars, {in[0], in[1], in[2]}, in[3]);
      }));
  Parameter ours = parameter();
  auto m = leaf(), v = leaf();
  Arrays state{
      mx::array(parameter().weight), mx::zeros({kElements}),
      mx::zeros({kElements})
  };
  for (int step = 1; step <= kSteps; ++step) {
    ours.gradient = gradient(step);
    ours.gradient_scale = 0.5f / static_cast<float>(step);
    Arrays in = state;
    in.push_back(ours.gradient);
    for (const auto& a :
         step_scalars({.learning_rate = double{h.lr} / step,
                       .gradient_scale = double{ours.gradient_scale},
                       .beta1 = double{h.beta1},
                       .beta2 = double{h.beta2},
                       .step = step})
             .arrays()) {
      in.push_back(a);
    }
    state = compiled(in);
    mx::eval(state);
    AdamW now = h;
    now.lr = h.lr / static_cast<float>(step);
    adamw_step(now, step, ours, m, v);
    expect_near(state[0], ours.weight);
  }
  EXPECT_EQ(traced, 1);
}

TEST_F(DeviceStep, RefusesWhatOnlyACpuHas) {
  Parameter p = parameter();
  p.refresh = [](const Execution&, std::size_t, std::size_t) {};
  auto m = leaf();
  const ScopedFace gpu(Face::gpu);
  EXPECT_THROW(lion_step({}, p, m), UsageError);
}

}  // namespace
}  // namespace hearth::ops
