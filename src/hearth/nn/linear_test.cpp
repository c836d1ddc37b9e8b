#include "hearth/nn/linear.h"

#include <gtest/gtest.h>

#include "hearth/nn/init.h"

namespace hearth::nn {
namespace {

// What adapters over a rounded base are trained through in float16.
TEST(Linear, RoundedWeightsAreMultipliedInFloat16) {
  Weight weight({.name = "layer.weight", .shape = {10, 64}, .matrix = true});
  const Linear layer({.weight = &weight});
  initialize(weight, 3, 1);
  weight.set(
      std::make_shared<const ops::QuantizedWeight>(
          ops::QuantizedWeight::quantize(
              weight.value(), ops::QuantFormat::parse("q8_0")
          )
      )
  );
  Pass pass;
  pass.quantized = ops::QuantCompute::kExact;
  const auto x = mx::random::normal({3, 64}, mx::float32, mx::random::key(1));
  const auto half = mx::astype(x, mx::float16);
  const auto near = [](const mx::array& a, const mx::array& b) {
    return mx::allclose(mx::astype(a, mx::float32), b, 1e-2, 1e-2).item<bool>();
  };
  const auto y = layer(half, pass);
  EXPECT_EQ(y.dtype(), mx::float16);
  EXPECT_TRUE(near(y, layer(x, pass)));
  const auto sum = [&](const mx::array& v) {
    return mx::sum(mx::square(mx::astype(layer(v, pass), mx::float32)));
  };
  const auto dx = mx::grad(sum)(half);
  EXPECT_EQ(dx.dtype(), mx::float16);
  EXPECT_TRUE(near(dx, mx::grad(sum)(x)));
}

}  // namespace
}  // namespace hearth::nn
