// Rounding to every format there is, the gradient, and what is refused.
#include "hearth/ops/fake_quant/op.h"

#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/op_case.h"
#include "hearth/ops/quantized_linear/weight.h"

namespace hearth::ops {
namespace {

class FakeQuant : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

bool same_bits(mx::array a, mx::array b) {
  a = mx::contiguous(a), b = mx::contiguous(b);
  mx::eval(a, b);
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}

TEST_F(FakeQuant, IsTheFormatsRoundTrip) {
  for (const char* name :
       {"affine4-g64-bf16", "affine3-g32-f16", "affine8-g128-f32", "q8_0",
        "q4_0", "q4_1", "q4_k", "q5_k", "q6_k", "int8-channel-f32",
        "int4-g32-f16"}) {
    const auto f = QuantFormat::parse(name);
    for (const auto dtype : {mx::float32, mx::bfloat16}) {
      const auto w = normal_input({7, 256}, dtype, 10);
      const auto want = QuantizedWeight::quantize(w, f).dequantize(dtype);
      EXPECT_TRUE(same_bits(fake_quant(w, f), want)) << name;
    }
  }
}

TEST_F(FakeQuant, PassesTheGradientThrough) {
  const auto w = normal_input({4, 64}, mx::float32, 11);
  const auto ct = normal_input({4, 64}, mx::float32, 12);
  for (const char* name : {"affine4-g32-f32", "q8_0", "int4-channel-f32"}) {
    const auto f = QuantFormat::parse(name);
    const auto [value, gradient] = mx::vjp(
        [&](const Arrays& v) { return Arrays{fake_quant(v[0], f)}; }, {w}, {ct}
    );
    EXPECT_TRUE(same_bits(gradient[0], ct)) << name;
    EXPECT_FALSE(same_bits(value[0], w)) << name;
  }
}

TEST_F(FakeQuant, RefusesAndShowsNan) {
  const auto f = QuantFormat::parse("q4_k");
  EXPECT_THROW(fake_quant(mx::ones({2, 100}), f), UsageError);
  EXPECT_THROW(fake_quant(mx::array(1.0f), f), UsageError);
  EXPECT_THROW(fake_quant(mx::ones({2, 256}, mx::float16), f), UsageError);
  auto w = normal_input({2, 64}, mx::float32, 13);
  w.data<float>()[40] = std::numeric_limits<float>::quiet_NaN();
  const auto y = fake_quant(w, QuantFormat::parse("affine4-g32-f32"));
  EXPECT_EQ(mx::sum(mx::isnan(y)).item<int>(), 32);
}

}  // namespace
}  // namespace hearth::ops
