// The scaling variants against values worked out another way, and what the op
// refuses.
#include "hearth/ops/rope/op.h"

#include <cmath>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::ops {
namespace {

RopeConfig config(RopeScaling scaling, double factor) {
  RopeConfig c;
  c.dims = 64;
  c.scaling = scaling;
  c.factor = factor;
  c.original_length = 2048;
  return c;
}

TEST(RopeFrequencies, PlainAndLinear) {
  const auto plain = rope_frequencies(config(RopeScaling::none, 1));
  ASSERT_EQ(plain.inverse.size(), 32u);
  EXPECT_DOUBLE_EQ(plain.inverse[0], 1);
  EXPECT_NEAR(plain.inverse[16], 0.01, 1e-15);
  const auto linear = rope_frequencies(config(RopeScaling::linear, 4));
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_DOUBLE_EQ(linear.inverse[i], plain.inverse[i] / 4);
  }
}

// Up to the trained length nothing changes; at factor times the length the
// slowest pair is rotated as far as by plain rope at the trained length, to the
// offset of one that the formula has.
TEST(RopeFrequencies, DynamicKeepsShortAndStretchesLong) {
  auto c = config(RopeScaling::dynamic, 2);
  const auto plain = rope_frequencies(config(RopeScaling::none, 1));
  c.length = 1000;
  EXPECT_EQ(rope_frequencies(c).inverse, plain.inverse);
  c.length = 4096;
  const auto stretched = rope_frequencies(c);
  EXPECT_DOUBLE_EQ(stretched.inverse[0], 1);
  // base grows by 3^(64/62), so pair 31 slows down by 3^(64/62 * 62/64) = 3.
  EXPECT_NEAR(plain.inverse[31] / stretched.inverse[31], 3, 1e-9);
}

TEST(RopeFrequencies, Llama3KeepsFastPairsAndSlowsTheRest) {
  RopeConfig c = config(RopeScaling::llama3, 8);
  c.base = 500000;
  c.original_length = 8192;
  const auto got = rope_frequencies(c);
  RopeConfig p = c;
  p.scaling = RopeScaling::none;
  const auto plain = rope_frequencies(p);
  for (std::size_t i = 0; i < 32; ++i) {
    const double wavelength = 2 * M_PI / plain.inverse[i];
    const double ratio = plain.inverse[i] / got.inverse[i];
    if (wavelength < 8192 / 4.0) {
      EXPECT_NEAR(ratio, 1, 1e-12);
    }
    if (wavelength > 8192 / 1.0) {
      EXPECT_NEAR(ratio, 8, 1e-12);
    }
    EXPECT_GE(ratio, 1 - 1e-12);
    EXPECT_LE(ratio, 8 + 1e-12);
  }
}

TEST(RopeFrequencies, YarnBlendsAndScales) {
  const auto got = rope_frequencies(config(RopeScaling::yarn, 4));
  const auto plain = rope_frequencies(config(RopeScaling::none, 1));
  EXPECT_NEAR(got.scale, 0.1 * std::log(4.0) + 1, 1e-15);
  double before = 1;
  for (std::size_t i = 0; i < 32; ++i) {
    const double rotations = 2048 * plain.inverse[i] / (2 * M_PI);
    const double ratio = plain.inverse[i] / got.inverse[i];
    // Well inside the limits pairs are kept or divided in full; the ramp
    // between rounds its ends to whole pairs.
    if (rotations > 2 * 32) {
      EXPECT_NEAR(ratio, 1, 1e-12);
    }
    if (rotations < 0.5 * 1) {
      EXPECT_NEAR(ratio, 4, 1e-12);
    }
    EXPECT_GE(ratio, before - 1e-12);
    before = ratio;
  }
}

TEST(RopeFrequencies, RefusesWhatCannotBe) {
  RopeConfig c = config(RopeScaling::none, 1);
  c.dims = 7;
  EXPECT_THROW(rope_frequencies(c), UsageError);
  c = config(RopeScaling::yarn, 4);
  c.original_length = 0;
  EXPECT_THROW(rope_frequencies(c), UsageError);
  EXPECT_THROW(rope_scaling_named("su"), UsageError);
}

TEST(Rope, PositionsOutsideTheTableGiveNan) {
  for (const Face face : {Face::kernels, Face::gpu}) {
    for (const auto pairs : {RopePairs::halves, RopePairs::interleaved}) {
      const ScopedFace forced(face);
      const auto table = rope_table(rope_frequencies(config({}, 1)), 8);
      auto y = rope(
          mx::ones({1, 3, 1, 64}), mx::array({7, 8, -1}), table, pairs,
          mx::Device::cpu
      );
      y.eval();
      EXPECT_FALSE(std::isnan(y.data<float>()[0]));
      EXPECT_TRUE(std::isnan(y.data<float>()[64]));
      EXPECT_TRUE(std::isnan(y.data<float>()[191]));
    }
  }
}

// Positions that all rows share, and the rotation back after the rotation.
TEST(Rope, AGpuRotatesBackWhatItRotated) {
  const ScopedFace gpu(Face::gpu);
  const auto cpu = mx::StreamOrDevice(mx::Device::cpu);
  const auto table = rope_table(rope_frequencies(config({}, 1)), 50);
  const auto x =
      mx::random::normal({2, 3, 2, 80}, mx::float32, 0.0f, 1.0f, {}, cpu);
  for (const auto pairs : {RopePairs::halves, RopePairs::interleaved}) {
    const auto rotate = [&](const Arrays& in) {
      return Arrays{rope(in[0], mx::array({3, 0, 49}), table, pairs, cpu)};
    };
    const auto y = rotate({x})[0];
    EXPECT_FALSE(mx::allclose(y, x, 1e-2, 1e-2, false, cpu).item<bool>());
    const auto back = mx::vjp(rotate, {x}, {y}).second[0];
    EXPECT_TRUE(mx::allclose(back, x, 1e-5, 1e-5, false, cpu).item<bool>());
  }
}

TEST(Rope, RefusesWrongShapes) {
  const auto table = rope_table(rope_frequencies(config({}, 1)), 8);
  const auto p = mx::array({0, 1});
  const auto s = mx::StreamOrDevice(mx::Device::cpu);
  const auto half = RopePairs::halves;
  EXPECT_THROW(rope(mx::ones({2, 64}), p, table, half, s), UsageError);
  EXPECT_THROW(rope(mx::ones({1, 2, 1, 32}), p, table, half, s), UsageError);
  EXPECT_THROW(rope(mx::ones({1, 3, 1, 64}), p, table, half, s), UsageError);
}

}  // namespace
}  // namespace hearth::ops
