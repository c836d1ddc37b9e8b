// The steps as graphs against the kernels' steps in place, several in a row.
#include "hearth/ops/optimizer_step/gpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

constexpr int kElements = 4099, kSteps = 3;

class OptimizerStepGpu : public testing::Test {
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
TEST_F(OptimizerStepGpu, AdamWIsTheKernels) {
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
TEST_F(OptimizerStepGpu, EightBitStatesAreTheKernels) {
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
    auto after = adamw8_graph(h, {now, ours.gradient, scalars});
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

// It is divided by, so its code is 1 where the nearest would be 0.
TEST_F(OptimizerStepGpu, TheLeastSecondMomentIsNoZero) {
  const auto g = mx::array({1.0f, 1e-6f, 0.0f});
  const auto codes = [](mx::Dtype t) { return mx::zeros({3}, t); };
  const auto after = adamw8_graph(
      {}, {{mx::zeros({3}), codes(mx::int8), codes(mx::uint8), mx::zeros({1}),
            mx::zeros({1})},
           g,
           step_scalars({})}
  );
  const auto want = mx::array({255, 1, 0}, mx::uint8);
  EXPECT_TRUE(mx::array_equal(after[2], want).item<bool>());
}

TEST_F(OptimizerStepGpu, LionIsTheKernels) {
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

TEST_F(OptimizerStepGpu, LionShowsNan) {
  const auto w = mx::zeros({3}), m = mx::zeros({3});
  const auto g = mx::array({1.0f, NAN, -2.0f});
  auto after = lion_graph({}, {{w, m}, g, step_scalars({})});
  mx::eval(after);
  EXPECT_TRUE(std::isnan(after[0].data<float>()[1]));
  EXPECT_FALSE(std::isnan(after[0].data<float>()[2]));
}

// How much mx::compile does, for as long as it lives.
struct CompileMode {
  explicit CompileMode(mx::CompileMode mode) { mx::set_compile_mode(mode); }
  ~CompileMode() { mx::set_compile_mode(mx::CompileMode::enabled); }
};

// One compiled function serves every step: what changes comes as arrays. It is
// traced and not joined, which on a CPU would take a compiler.
TEST_F(OptimizerStepGpu, CompiledOnceItServesEveryStep) {
  const CompileMode traced_alone(mx::CompileMode::no_fuse);
  const AdamW h{0.01f, 0.9f, 0.99f, 1e-8f, 0.1f};
  int traced = 0;
  const auto compiled =
      mx::compile(std::function<Arrays(const Arrays&)>([&](const Arrays& in) {
        ++traced;
        const auto scalars = StepScalars::of({in.data() + 4, 5});
        return adamw_graph(h, {{in[0], in[1], in[2]}, in[3], scalars});
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

// What a device finds unfit changes nothing, whatever the gradient holds.
TEST_F(OptimizerStepGpu, AnUnfitStepLeavesEveryArrayAsItWas) {
  const auto w = normal_input({kElements}, mx::float32, 3);
  const auto m = normal_input({kElements}, mx::float32, 4);
  const auto v = mx::square(normal_input({kElements}, mx::float32, 5));
  auto bad = mx::array({INFINITY, NAN, 1.0f});
  bad = mx::concatenate({bad, mx::ones({kElements - 3})});
  auto scalars = step_scalars({.learning_rate = 0, .gradient_scale = 0});
  scalars.fit = mx::array(false);
  const auto expect_same_as = [](const Arrays& after, const Arrays& before) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(mx::array_equal(after[i], before[i]).item<bool>()) << i;
    }
  };
  expect_same_as(adamw_graph({}, {{w, m, v}, bad, scalars}), {w, m, v});
  expect_same_as(lion_graph({}, {{w, m}, bad, scalars}), {w, m});
  const auto state = make_adamw8_state(kElements, MemoryZone::named("test"));
  const Arrays before{w, state.m, state.v, state.m_scale, state.v_scale};
  expect_same_as(adamw8_graph({}, {before, bad, scalars}), before);
}

// MLX joins eleven operations at most, and none that is read from outside. A
// parameter's whole update must stay within that: as several kernels it would
// read and write its state several times.
TEST_F(OptimizerStepGpu, AdamWIsOneKernel) {
  const CompileMode joined(mx::CompileMode::enabled);
  const auto update = mx::compile(
      std::function<Arrays(const Arrays&)>([](const Arrays& in) -> Arrays {
        auto scalars = StepScalars::of({in.data() + 5, StepScalars::kCount});
        scalars.fit = in[4];
        auto out = adamw_graph({}, {{in[0], in[1], in[2]}, in[3], scalars});
        out.push_back(mx::astype(out[0], mx::bfloat16));
        return out;
      })
  );
  const auto a = mx::zeros({kElements});
  Arrays in{a, mx::ones({kElements}), mx::full({kElements}, 2.0f)};
  in.push_back(mx::zeros({kElements}, mx::bfloat16));
  in.push_back(mx::array(true));
  for (const auto& s : step_scalars({}).arrays()) in.push_back(s);
  // Nothing is evaluated: what has a primitive is a kernel, but for scalars and
  // for views of them.
  std::set<mx::Primitive*> kernels;
  Arrays todo = update(in);
  while (!todo.empty()) {
    const mx::array one = todo.back();
    todo.pop_back();
    const bool given = std::ranges::any_of(in, [&](const mx::array& i) {
      return i.id() == one.id();
    });
    if (given || !one.has_primitive()) continue;
    const bool view = one.primitive().name() == std::string("Broadcast");
    if (one.ndim() > 0 && !view) kernels.insert(&one.primitive());
    for (const auto& i : one.inputs()) todo.push_back(i);
  }
  EXPECT_EQ(kernels.size(), 1u);
}

TEST_F(OptimizerStepGpu, RefusesWhatOnlyACpuHas) {
  Parameter p = parameter();
  p.refresh = [](const Execution&, std::size_t, std::size_t) {};
  auto m = leaf();
  const ScopedFace gpu(Face::gpu);
  EXPECT_THROW(lion_step({}, p, m), UsageError);
}

}  // namespace
}  // namespace hearth::ops
