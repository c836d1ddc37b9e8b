// Rounding as a GPU runs it against the kernels, on a CPU: bit for bit, in
// every format it has.
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/ops/fake_quant/op.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

class FakeQuantGpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

mx::array on_gpu(const mx::array& w, const kernels::QuantFormat& f) {
  const ScopedFace gpu(Face::gpu);
  return fake_quant(w, f);
}

TEST_P(FakeQuantGpu, IsTheKernels) {
  const auto format = kernels::QuantFormat::parse(GetParam());
  for (const auto t : {mx::float32, mx::bfloat16}) {
    // Groups of zeros, of one sign, of both, of one number, and a broken one.
    auto w = normal_input({6, 256}, mx::float32, 3);
    w = mx::multiply(
        w, mx::reshape(mx::array({0.f, 1.f, 1e-3f, 30.f, 1.f, 1.f}), {6, 1})
    );
    const auto row = mx::reshape(mx::arange(6), {6, 1});
    w = mx::where(mx::equal(row, mx::array(4)), mx::abs(w), w);
    w = mx::where(mx::equal(row, mx::array(5)), mx::array(-0.7f), w);
    w = mx::astype(w, t);
    const auto got = on_gpu(w, format), want = fake_quant(w, format);
    EXPECT_EQ(got.dtype(), t);
    EXPECT_TRUE(mx::array_equal(got, want).item<bool>());
    const auto broken = mx::where(
        mx::equal(mx::arange(256), mx::array(200)), mx::array(NAN, t), w
    );
    EXPECT_TRUE(
        mx::array_equal(
            on_gpu(broken, format), fake_quant(broken, format), true
        )
            .item<bool>()
    );
  }
}

TEST_P(FakeQuantGpu, GradientPassesStraightThrough) {
  const auto format = kernels::QuantFormat::parse(GetParam());
  const auto w = normal_input({3, 256}, mx::float32, 3);
  const auto dy = normal_input({3, 256}, mx::float32, 4);
  const auto f = [&](const Arrays& in) {
    return Arrays{on_gpu(in[0], format)};
  };
  const auto dw = mx::vjp(f, {w}, {dy}).second[0];
  EXPECT_TRUE(mx::array_equal(dw, dy).item<bool>());
}

INSTANTIATE_TEST_SUITE_P(
    Formats,
    FakeQuantGpu,
    testing::Values(
        "affine4-g64-f32",
        "affine4-g32-bf16",
        "affine3-g64-f16",
        "affine8-g128-f32",
        "int8-g32-f32",
        "int4-channel-f16",
        "int4-g64-bf16",
        "q8_0"
    )
);

}  // namespace
}  // namespace hearth::ops
