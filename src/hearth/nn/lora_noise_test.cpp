// Dropout before an adapter: its own in every layer, none outside training.
#include <gtest/gtest.h>

#include "hearth/nn/init.h"
#include "hearth/nn/linear.h"
#include "hearth/nn/lora.h"

namespace hearth::nn {
namespace {

// The same layer with the same adapter, as the nth of a model.
mx::array output_of(std::uint64_t index, const mx::array& x, const Pass& pass) {
  ParameterSet set;
  Linear layer(
      {.weight = &set.add(
           {.name = "layer.weight",
            .shape = {16, 32},
            .init = Init::normal,
            .matrix = true}
       )}
  );
  LoraConfig config;
  config.rank = 4, config.dropout = 0.5;
  layer.attach(set, config, index);
  for (Weight* p : set.all()) {
    initialize(*p, 3, 1);
    if (p->init == Init::zeros) p->set(mx::ones(p->shape));
  }
  auto y = layer(x, pass);
  y.eval();
  return y;
}

TEST(LoraNoise, EveryLayerDropsItsOwn) {
  mx::set_default_device(mx::Device::cpu);
  const auto x =
      mx::random::normal({1, 3, 32}, mx::float32, mx::random::key(1));
  Pass pass;
  pass.dtype = mx::float32;
  const auto plain = output_of(0, x, pass);
  EXPECT_TRUE(mx::array_equal(plain, output_of(1, x, pass)).item<bool>());
  pass.training = true;
  const std::uint64_t keys[] = {7, 8, 9};
  pass.noise = mx::array(keys, {1, 3});
  const auto first = output_of(0, x, pass);
  EXPECT_FALSE(mx::array_equal(plain, first).item<bool>());
  EXPECT_TRUE(mx::array_equal(first, output_of(0, x, pass)).item<bool>());
  EXPECT_FALSE(mx::array_equal(first, output_of(1, x, pass)).item<bool>());
}

// What an adapter counts: alpha over its rank, or over the rank's root.
TEST(LoraScale, IsAlphaOverTheRankOrItsRoot) {
  LoraConfig config;
  config.rank = 16, config.alpha = 8;
  EXPECT_FLOAT_EQ(config.scale(), 0.5f);
  config.rslora = true;
  EXPECT_FLOAT_EQ(config.scale(), 2.0f);
}

}  // namespace
}  // namespace hearth::nn
