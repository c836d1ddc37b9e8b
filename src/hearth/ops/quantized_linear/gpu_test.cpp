// A weight as a GPU holds it, and the product there. Both are of MLX's own ops,
// so that a CPU can run them on what a GPU's stream would be given.
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/op_case.h"
#include "hearth/ops/quantized_linear/faces_impl.h"

namespace hearth::ops {
namespace {

// Nothing runs on it: it says whom the weight is for.
mx::Stream gpu_stream() {
  return mx::Stream(0, mx::Device::gpu);
}

// x W^T in double, from the weights as they are read back on a CPU.
std::vector<double> product(const mx::array& x, const mx::array& w) {
  const int rows = x.shape(0), out = w.shape(0), n = w.shape(1);
  std::vector<double> y;
  for (int r = 0; r < rows; ++r) {
    for (int o = 0; o < out; ++o) {
      double sum = 0;
      for (int i = 0; i < n; ++i) {
        sum += double{x.data<float>()[r * n + i]} *
               double{w.data<float>()[o * n + i]};
      }
      y.push_back(sum);
    }
  }
  return y;
}

// What a GPU's stream would be given, on a CPU.
mx::array gpu_product(const mx::array& x, const QuantizedWeight& w) {
  return quantized_linear_gpu(x, w, QuantCompute::kExact, mx::Device::cpu);
}

class QuantizedGpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

TEST_P(QuantizedGpu, ProductIsTheWeightsTimesX) {
  const auto format = QuantFormat::parse(GetParam());
  const auto w = normal_input({24, 512}, mx::float32, 8, 0.05f);
  const auto here = QuantizedWeight::quantize(w, format);
  const auto there = QuantizedWeight::quantize(w, format, gpu_stream());
  EXPECT_TRUE(here.packed());
  EXPECT_FALSE(there.packed()) << "what a GPU holds no CPU kernel reads";
  auto wide = here.dequantize(mx::float32);
  auto x = normal_input({5, 512}, mx::float32, 7);
  mx::eval(wide, x);
  const auto want = product(x, wide);
  // Formats that MLX has no product for are widened to eight bits of mantissa.
  const bool widened = format.kind == kernels::QuantKind::kQ5_K ||
                       format.kind == kernels::QuantKind::kQ6_K;
  // With 16-bit scales a CPU rounds the weights to them as MLX's files mean it.
  const bool half_scales = format.kind == kernels::QuantKind::kAffine &&
                           format.scale != kernels::ScaleType::kF32;
  const double near = widened || half_scales ? 0.02 : 1e-4;
  auto y = gpu_product(x, there);
  y.eval();
  ASSERT_EQ(y.shape(), (mx::Shape{5, 24}));
  EXPECT_EQ(y.dtype(), mx::float32);
  double largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(y.data<float>()[i], want[i], near) << i;
    largest = std::max(largest, std::abs(want[i]));
  }
  EXPECT_GT(largest, 1);
  // Activations keep their type, whatever the weight is held in.
  const auto half = gpu_product(mx::astype(x, mx::bfloat16), there);
  EXPECT_EQ(half.dtype(), mx::bfloat16);
  // Scales of 8 bits.
  const float apart =
      mx::max(mx::abs(mx::subtract(mx::astype(half, mx::float32), y)))
          .item<float>();
  EXPECT_LT(double{apart}, 0.02 * largest);
}

// Adapters below a quantised layer train through it, whatever types its scales
// and the activations have (QLoRA over MLX's files has float16 and bfloat16).
TEST_P(QuantizedGpu, InputHasAGradient) {
  const auto format = QuantFormat::parse(GetParam());
  const auto w = normal_input({24, 512}, mx::float32, 8, 0.05f);
  const auto weight = QuantizedWeight::quantize(w, format, gpu_stream());
  const auto dense = weight.dequantize(mx::float32);
  for (const auto t : {mx::float32, mx::bfloat16, mx::float16}) {
    const auto x = normal_input({5, 512}, t, 7);
    const auto dy = normal_input({5, 24}, t, 9);
    const auto f = [&](const Arrays& in) {
      return Arrays{gpu_product(in[0], weight)};
    };
    const auto dx = mx::vjp(f, {x}, {dy}).second[0];
    EXPECT_EQ(dx.dtype(), t);
    const auto want = mx::matmul(mx::astype(dy, mx::float32), dense);
    const float apart =
        mx::max(mx::abs(mx::subtract(mx::astype(dx, mx::float32), want)))
            .item<float>();
    // Scales, weights or results of 8 bits, or none.
    EXPECT_LT(apart, 0.02);
  }
}

// In a compiled step the weight is a constant, and nothing of it is evaluated.
TEST_P(QuantizedGpu, TracesInsideOneCompiledFunction) {
  mx::set_compile_mode(mx::CompileMode::no_fuse);
  const auto w = normal_input({24, 512}, mx::float32, 8, 0.05f);
  const auto weight = QuantizedWeight::quantize(
      w, QuantFormat::parse(GetParam()), gpu_stream()
  );
  const auto f = [&](const Arrays& in) {
    const auto product = [&](const Arrays& x) {
      return Arrays{gpu_product(x[0], weight)};
    };
    const auto [y, dx] = mx::vjp(product, {in[0]}, {in[1]});
    return Arrays{y[0], dx[0]};
  };
  const Arrays in{
      normal_input({5, 512}, mx::bfloat16, 7),
      normal_input({5, 24}, mx::bfloat16, 9)
  };
  const auto want = f(in), got = mx::compile(f)(in);
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(mx::array_equal(got[i], want[i]).item<bool>()) << i;
  }
  mx::set_compile_mode(mx::CompileMode::enabled);
}

// One copy: codes, and scales and biases in the file's type and in bfloat16.
TEST_P(QuantizedGpu, IsHeldOnce) {
  const auto format = QuantFormat::parse(GetParam());
  if (format.kind == kernels::QuantKind::kQ5_K ||
      format.kind == kernels::QuantKind::kQ6_K) {
    GTEST_SKIP() << "MLX has no product for it";
  }
  const auto w = normal_input({24, 512}, mx::float32, 8, 0.05f);
  const auto weight = QuantizedWeight::quantize(w, format, gpu_stream());
  const std::size_t codes = 24u * 512u * std::size_t(format.bits) / 8;
  EXPECT_GE(weight.nbytes(), codes);
  // At most two numbers of 4 and two of 2 bytes for each 32 columns, and what
  // q4_k's blocks begin with.
  EXPECT_LE(weight.nbytes(), codes + 24u * 512u / 32u * 14u);
}

TEST_P(QuantizedGpu, ArraysComeBackBitForBit) {
  const auto format = QuantFormat::parse(GetParam());
  const auto w = normal_input({24, 512}, mx::float32, 8, 0.05f);
  const auto here = QuantizedWeight::quantize(w, format).arrays();
  const auto there =
      QuantizedWeight::quantize(w, format, gpu_stream()).arrays();
  EXPECT_TRUE(mx::array_equal(here.codes, there.codes).item<bool>());
  ASSERT_EQ(here.scales.has_value(), there.scales.has_value());
  if (here.scales) {
    EXPECT_TRUE(mx::array_equal(*here.scales, *there.scales).item<bool>());
  }
  ASSERT_EQ(here.biases.has_value(), there.biases.has_value());
  if (here.biases) {
    EXPECT_TRUE(mx::array_equal(*here.biases, *there.biases).item<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats,
    QuantizedGpu,
    testing::Values(
        "affine4-g64-f32",
        "affine4-g64-f16",
        "affine4-g64-bf16",
        "affine8-g32-f32",
        "q8_0",
        "q4_0",
        "q4_1",
        "q4_k",
        "q5_k",
        "q6_k",
        "int8-channel-f32",
        "int4-g32-f16"
    )
);

// Neither side takes the other's.
TEST(QuantizedGpuHeld, IsRefusedOnTheOtherSide) {
  mx::set_default_device(mx::Device::cpu);
  const auto w = normal_input({8, 64}, mx::float32, 8);
  const auto x = normal_input({2, 64}, mx::float32, 7);
  const auto format = QuantFormat::parse("affine4-g64-f32");
  const auto here = QuantizedWeight::quantize(w, format);
  EXPECT_THROW(gpu_product(x, here), UsageError);
  const auto there = QuantizedWeight::quantize(w, format, gpu_stream());
  EXPECT_THROW(quantized_linear(x, there), UsageError);
}

}  // namespace
}  // namespace hearth::ops
