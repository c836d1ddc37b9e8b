// What a GPU runs against the kernels, on a CPU.
#include "hearth/ops/optimizer_step/plain.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

constexpr int kElements = 4099, kSteps = 3;

class PlainStep : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }

  mx::array leaf(mx::Dtype t = mx::float32) {
    return make_leaf({kElements}, t, MemoryZone::named("optimizer test"));
  }
  Parameter parameter() {
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
    for (int i = 0; i < kElements; ++i) {
      const float x = a.data<float>()[i], y = b.data<float>()[i];
      ASSERT_NEAR(x, y, 2e-6 * (1 + std::abs(y))) << i;
    }
  }
};

TEST_F(PlainStep, AdamWIsTheKernels) {
  const AdamW h{0.01f, 0.9f, 0.99f, 1e-8f, 0.1f};
  Parameter ours = parameter(), plain = parameter();
  auto m = leaf(), v = leaf(), m2 = leaf(), v2 = leaf();
  const mx::array held = plain.weight;  // as a model holds it
  for (int step = 1; step <= kSteps; ++step) {
    ours.gradient = plain.gradient = gradient(step);
    adamw_step(h, step, ours, m, v);
    plain_adamw_step(h, step, plain, m2, v2);
    expect_near(held, ours.weight);
    expect_near(m2, m);
    expect_near(v2, v);
  }
  for (int i = 0; i < kElements; ++i) {
    const float x = static_cast<float>(plain.copy->data<mx::bfloat16_t>()[i]);
    ASSERT_NEAR(x, held.data<float>()[i], 0.005 * (1 + std::abs(x))) << i;
  }
}

TEST_F(PlainStep, LionIsTheKernels) {
  const Lion h{0.01f, 0.9f, 0.99f, 0.1f};
  Parameter ours = parameter(), plain = parameter();
  auto m = leaf(), m2 = leaf();
  const mx::array held = plain.weight;
  for (int step = 1; step <= kSteps; ++step) {
    ours.gradient = plain.gradient = gradient(step);
    lion_step(h, ours, m);
    plain_lion_step(h, plain, m2);
    expect_near(held, ours.weight);
    expect_near(m2, m);
  }
}

TEST_F(PlainStep, RefusesWhatOnlyACpuHas) {
  Parameter p = parameter();
  p.refresh = [](const Execution&, std::size_t, std::size_t) {};
  auto m = leaf();
  EXPECT_THROW(plain_lion_step({}, p, m), UsageError);
}

}  // namespace
}  // namespace hearth::ops
