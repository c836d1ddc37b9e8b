#include "hearth/nn/mlp.h"

#include <gtest/gtest.h>

#include "hearth/base/memory.h"
#include "hearth/nn/init.h"

namespace hearth::nn {
namespace {

struct MlpRun {
  std::vector<mx::array> gradients;  // of x and of every parameter
  std::size_t peak = 0;
};

// The gradients of a sum of two parts, one after the other, so that what the
// first keeps is still there when the second is through.
MlpRun run(const MlpConfig& config, bool again) {
  ParameterSet set;
  const Mlp first(set, "first", config), second(set, "second", config);
  std::vector<mx::array> arguments{
      mx::random::normal({64, config.dim}, mx::float32, mx::random::key(1))
  };
  for (Parameter* p : set.all()) {
    initialize(*p, 5, 2);
    p->trainable = true;
    arguments.push_back(p->value);
  }
  Pass pass;
  pass.training = true;
  pass.dtype = mx::float32;
  pass.activate_again = again;
  mx::eval(arguments);
  const auto all = set.all();
  const auto loss = [&](const std::vector<mx::array>& v) {
    const std::vector<mx::array> weights(v.begin() + 1, v.end());
    const Substitution inside(all, weights);
    const auto y = second(first(v[0], pass), pass);
    return std::vector<mx::array>{mx::sum(mx::square(y))};
  };
  reset_memory_peak();
  auto gradients = mx::vjp(loss, arguments, {mx::array(1.0f)}).second;
  mx::eval(gradients);
  return {gradients, memory_usage().peak};
}

TEST(Mlp, WhatIsMadeAgainInTheBackwardPassChangesNothing) {
  MlpConfig gated{.dim = 24, .ffn = 80};
  MlpConfig plain = gated;
  plain.gated = false, plain.bias = true;
  plain.act = ops::Activation::gelu;
  for (const MlpConfig& config : {gated, plain}) {
    const auto kept = run(config, false).gradients;
    const auto again = run(config, true).gradients;
    ASSERT_EQ(kept.size(), again.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      EXPECT_TRUE(mx::array_equal(kept[i], again[i]).item<bool>()) << i;
      EXPECT_GT(mx::max(mx::abs(again[i])).item<float>(), 0) << i;
    }
  }
}

TEST(Mlp, WhatIsMadeAgainIsNotHeld) {
  const MlpConfig wide{.dim = 16, .ffn = 4096};
  const std::size_t kept = run(wide, false).peak, again = run(wide, true).peak;
  // The second part's own is there either way when its gradient is made.
  EXPECT_LT(again + 64UL * 4096 * 4 * 9 / 10, kept);
}

}  // namespace
}  // namespace hearth::nn
