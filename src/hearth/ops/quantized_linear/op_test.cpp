#include "hearth/ops/quantized_linear/op.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

using kernels::QuantKind;
using kernels::ScaleType;

class Quantized : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

bool same_bits(mx::array a, mx::array b) {
  a = mx::contiguous(a), b = mx::contiguous(b);
  mx::eval(a, b);
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}

mx::Dtype dtype_of(ScaleType t) {
  return t == ScaleType::kF16    ? mx::float16
         : t == ScaleType::kBf16 ? mx::bfloat16
                                 : mx::float32;
}

// Weights whose groups are ordinary, all zero, constant, and of one sign.
mx::array awkward_weights(int rows, int cols) {
  auto w = normal_input({rows, cols}, mx::float32, 5, 0.02f);
  w.data<float>()[cols + 3] = 1.5f;
  for (int c = 0; c < cols; ++c) {
    w.data<float>()[2 * cols + c] = 0.0f;
    w.data<float>()[3 * cols + c] = 0.75f;
    w.data<float>()[4 * cols + c] = -std::abs(w.data<float>()[4 * cols + c]);
  }
  return w;
}

TEST_F(Quantized, AffineIsMlxBitForBit) {
  for (const auto type : {ScaleType::kF32, ScaleType::kF16, ScaleType::kBf16}) {
    const auto w = mx::astype(awkward_weights(9, 256), dtype_of(type));
    const auto wide = mx::astype(w, mx::float32);
    for (const int bits : {2, 3, 4, 5, 6, 8}) {
      for (const int group : {32, 64, 128}) {
        SCOPED_TRACE(
            std::to_string(bits) + " bits, group " + std::to_string(group) +
            ", type " + std::to_string(static_cast<int>(type))
        );
        const auto want = mx::quantize(w, group, bits);
        const auto f = QuantFormat::affine(bits, group, type);
        for (const auto* table : kernels::usable_tables()) {
          const ScopedExecution forced(*table);
          const auto got = QuantizedWeight::quantize(wide, f);
          const auto a = got.arrays();
          EXPECT_TRUE(same_bits(a.codes, want[0])) << table->isa;
          EXPECT_TRUE(same_bits(*a.scales, want[1])) << table->isa;
          EXPECT_TRUE(same_bits(*a.biases, want[2])) << table->isa;
          const auto back =
              mx::dequantize(want[0], want[1], want[2], group, bits);
          EXPECT_TRUE(same_bits(
              got.dequantize(mx::float32), mx::astype(back, mx::float32)
          )) << table->isa;
        }
      }
    }
  }
}

TEST_F(Quantized, RunsArraysMadeByMlx) {
  const auto x = normal_input({3, 256}, mx::float32, 6);
  const auto w = awkward_weights(40, 256);
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    const auto q = mx::quantize(w, 64, bits);
    const auto want = mx::quantized_matmul(x, q[0], q[1], q[2], true, 64, bits);
    const QuantizedWeight weight(
        QuantFormat::affine(bits, 64, ScaleType::kF32), 256, {q[0], q[1], q[2]}
    );
    const auto got = quantized_linear(x, weight, QuantCompute::kExact);
    EXPECT_TRUE(mx::allclose(got, want, 1e-5, 1e-4).item<bool>()) << bits;
  }
}

// All other formats against their own weights read back; those are held
// against their oracles in kernels/quant.
TEST_F(Quantized, EveryFormatIsItsWeightsTimesX) {
  const auto x = normal_input({5, 512}, mx::float32, 7);
  const auto w = normal_input({24, 512}, mx::float32, 8, 1 / std::sqrt(512.0f));
  for (const char* name :
       {"q8_0", "q4_0", "q4_1", "q4_k", "q5_k", "q6_k", "int8-channel-f32",
        "int4-g32-f16", "int8-g64-bf16"}) {
    const auto weight = QuantizedWeight::quantize(w, QuantFormat::parse(name));
    const auto want =
        quantized_linear_reference(x, weight.dequantize(mx::float32));
    const auto exact = quantized_linear(x, weight, QuantCompute::kExact);
    EXPECT_TRUE(mx::allclose(exact, want, 1e-5, 1e-5).item<bool>()) << name;
    const auto int8 = quantized_linear(x, weight, QuantCompute::kInt8);
    EXPECT_TRUE(mx::allclose(int8, want, 0, 0.04).item<bool>()) << name;
    EXPECT_FALSE(same_bits(int8, exact)) << name << ": int8 did not run";
  }
}

TEST_F(Quantized, SizeIsTheFormats) {
  const auto w = normal_input({64, 1024}, mx::bfloat16, 9);
  const auto bytes = [&](const char* name) {
    return QuantizedWeight::quantize(w, QuantFormat::parse(name)).nbytes();
  };
  EXPECT_EQ(bytes("affine8-g64-bf16"), 64u * 1024 * 17 / 16);
  EXPECT_EQ(bytes("affine4-g64-bf16"), 64u * 1024 * 9 / 16);
  EXPECT_EQ(bytes("q8_0"), 64u * 1024 * 17 / 16);
}

TEST_F(Quantized, LeadingDimensionsAndEmptyBatches) {
  const auto weight = QuantizedWeight::quantize(
      normal_input({10, 64}, mx::float32, 3), QuantFormat::parse("q4_0")
  );
  const auto x = normal_input({2, 3, 64}, mx::bfloat16, 4);
  const auto y = quantized_linear(x, weight);
  EXPECT_EQ(y.shape(), (mx::Shape{2, 3, 10}));
  EXPECT_EQ(y.dtype(), mx::bfloat16);
  EXPECT_TRUE(same_bits(
      mx::reshape(y, {6, 10}), quantized_linear(mx::reshape(x, {6, 64}), weight)
  ));
  EXPECT_EQ(
      quantized_linear(mx::zeros({0, 64}), weight).shape(), (mx::Shape{0, 10})
  );
}

TEST_F(Quantized, NotFiniteShows) {
  const auto weight = QuantizedWeight::quantize(
      normal_input({10, 64}, mx::float32, 3), QuantFormat::parse("q8_0")
  );
  auto x = normal_input({2, 64}, mx::float32, 4);
  x.data<float>()[70] = std::numeric_limits<float>::infinity();
  const auto want =
      quantized_linear_reference(x, weight.dequantize(mx::float32));
  const auto exact = quantized_linear(x, weight, QuantCompute::kExact);
  EXPECT_TRUE(mx::array_equal(mx::isinf(exact), mx::isinf(want)).item<bool>());
  const auto int8 = quantized_linear(x, weight, QuantCompute::kInt8);
  EXPECT_EQ(mx::sum(mx::isnan(int8)).item<int>(), 10);
  EXPECT_FALSE(mx::isnan(mx::take(int8, 0)).item<bool>());
}

TEST_F(Quantized, RefusesWhatDoesNotFit) {
  const auto q = mx::quantize(mx::ones({8, 128}), 64, 4);
  const auto f = QuantFormat::affine(4, 64, ScaleType::kF32);
  const auto make = [&](int cols, const QuantizedArrays& a) {
    return QuantizedWeight(f, cols, a);
  };
  EXPECT_THROW(make(64, {q[0], q[1], q[2]}), UsageError);
  EXPECT_THROW(make(128, {q[1], q[1], q[2]}), UsageError);
  EXPECT_THROW(make(128, {q[0], q[1], {}}), UsageError);
  EXPECT_THROW(
      make(128, {q[0], mx::astype(q[1], mx::float16), q[2]}), UsageError
  );
  EXPECT_THROW(
      QuantizedWeight(
          QuantFormat::parse("q4_0"), 32,
          {mx::zeros({2, 17}, mx::uint8), {}, {}}
      ),
      UsageError
  );
  const auto weight = make(128, {q[0], q[1], q[2]});
  EXPECT_THROW(quantized_linear(mx::ones({2, 64}), weight), UsageError);
  EXPECT_THROW(
      quantized_linear(mx::ones({2, 128}, mx::float16), weight), UsageError
  );
}

}  // namespace
}  // namespace hearth::ops
