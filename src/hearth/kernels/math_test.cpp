// The vector functions of every table this machine runs, against double
// precision libm; the conversions bit for bit against arithmetic done another
// way.
#include "hearth/kernels/math.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Math : public testing::TestWithParam<const Table*> {
 protected:
  const MathKernels& k() const { return *GetParam()->math; }

  std::vector<float> map(MathKernels::Map f, const std::vector<float>& x) {
    std::vector<float> y(x.size());
    f(static_cast<long>(x.size()), x.data(), y.data());
    return y;
  }

  // The largest error in units of the last place; flush is the magnitude below
  // which an absolute error of that size is allowed instead.
  double worst_ulp(
      MathKernels::Map f,
      double (*exact)(double),
      const std::vector<float>& x,
      double flush = 0
  ) {
    const auto y = map(f, x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = exact(x[i]);
      if (std::abs(want) < flush && std::abs(y[i]) < 2 * flush) continue;
      const float near = static_cast<float>(want);
      const double ulp =
          std::nextafter(std::abs(near), kInf) - double{std::abs(near)};
      worst = std::max(worst, std::abs(y[i] - want) / ulp);
    }
    return worst;
  }
};

std::vector<float> spread(float lo, float hi, int n) {
  std::vector<float> x(n);
  for (int i = 0; i < n; ++i) x[i] = lo + (hi - lo) * (i + 0.37f) / n;
  return x;
}

// Both signs, all magnitudes.
std::vector<float> magnitudes(float largest) {
  std::vector<float> x;
  for (float m = largest; m > 1e-38f; m *= 0.9937f) {
    x.push_back(m);
    x.push_back(-m);
  }
  return x;
}

double exact_sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST_P(Math, ExpIsAccurate) {
  EXPECT_LE(worst_ulp(k().exp, std::exp, spread(-87.3f, 88.7f, 300001)), 1);
  EXPECT_LE(worst_ulp(k().exp, std::exp, spread(-1, 1, 100001)), 1);
  EXPECT_LE(worst_ulp(k().exp, std::exp, spread(-103, -87, 10001)), 1);
}

TEST_P(Math, LogIsAccurate) {
  EXPECT_LE(worst_ulp(k().log, std::log, spread(0, 4, 300001)), 1.5);
  std::vector<float> x;
  for (float m = 3e38f; m > 1e-41f; m *= 0.997f) x.push_back(m);
  EXPECT_LE(worst_ulp(k().log, std::log, x), 1.5);
}

TEST_P(Math, TanhSigmoidAndErfAreAccurate) {
  for (const auto& x : {spread(-12, 12, 300001), magnitudes(100)}) {
    EXPECT_LE(worst_ulp(k().tanh, std::tanh, x), 2);
    EXPECT_LE(worst_ulp(k().erf, std::erf, x), 2);
    EXPECT_LE(worst_ulp(k().sigmoid, exact_sigmoid, x, 1.2e-38), 2.5);
  }
}

TEST_P(Math, SpecialValues) {
  const std::vector<float> x{kInf, -kInf, 0.0f, 1e30f, -1e30f, kNan, -1.0f};
  const auto expect = [&](MathKernels::Map f, std::vector<float> want) {
    const auto y = map(f, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(want[i])) {
        EXPECT_TRUE(std::isnan(y[i])) << x[i];
      } else {
        EXPECT_FLOAT_EQ(y[i], want[i]) << x[i];
      }
    }
  };
  expect(k().exp, {kInf, 0, 1, kInf, 0, kNan, 0.36787944f});
  expect(k().log, {kInf, kNan, -kInf, 69.0775528f, kNan, kNan, kNan});
  expect(k().tanh, {1, -1, 0, 1, -1, kNan, -0.76159416f});
  expect(k().sigmoid, {1, 0, 0.5f, 1, 0, kNan, 0.26894142f});
  expect(k().erf, {1, -1, 0, 1, -1, kNan, -0.84270079f});
}

// Every length up to three registers: lanes beyond are left alone.
TEST_P(Math, TailsTouchNothingBeyond) {
  for (int n = 0; n <= 48; ++n) {
    std::vector<float> x(n, 1.0f), back(n + 4, -7.0f);
    std::vector<Bf16> b(n + 4, Bf16{0xabcd});
    std::vector<Fp16> h(n + 4, Fp16{0xabcd});
    k().float_to_bf16(n, x.data(), b.data());
    k().float_to_fp16(n, x.data(), h.data());
    for (int i = 0; i < n + 4; ++i) {
      EXPECT_EQ(b[i].bits, i < n ? 0x3f80 : 0xabcd);
      EXPECT_EQ(h[i].bits, i < n ? 0x3c00 : 0xabcd);
    }
    k().bf16_to_float(n, b.data(), back.data());
    for (int i = 0; i < n + 4; ++i) EXPECT_EQ(back[i], i < n ? 1.0f : -7.0f);
    k().exp(n, x.data(), back.data());
    for (int i = n; i < n + 4; ++i) EXPECT_EQ(back[i], -7.0f);
  }
}

// Walks the neighbours in double precision instead of adding to the bits.
std::uint16_t nearest_bf16(float x) {
  std::uint32_t u;
  std::memcpy(&u, &x, 4);
  const auto value = [](std::uint32_t bits) {
    float f;
    std::memcpy(&f, &bits, 4);
    return double{f};
  };
  const std::uint32_t down = u & 0xffff0000u, up = down + 0x10000u;
  // The step above the largest finite value counts as 2^128.
  const double next =
      std::isinf(value(up)) ? std::copysign(0x1p128, x) : value(up);
  const double low = std::abs(x - value(down)), high = std::abs(next - x);
  const bool take_up = high < low || (high == low && ((down >> 16) & 1) != 0);
  return static_cast<std::uint16_t>((take_up ? up : down) >> 16);
}

TEST_P(Math, Bf16RoundsToNearestEven) {
  std::vector<float> x;
  for (std::uint32_t u = 0x00800000u; u < 0x7f800000u; u += 0x3f7u * 7) {
    float f;
    std::memcpy(&f, &u, 4);
    x.push_back(f);
    x.push_back(-f);
  }
  for (std::uint32_t high : {0x3f800000u, 0x3f810000u, 0x7f7f0000u}) {
    for (std::uint32_t low : {0u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const std::uint32_t u = high | low;
      float f;
      std::memcpy(&f, &u, 4);
      x.push_back(f);
    }
  }
  std::vector<Bf16> y(x.size());
  k().float_to_bf16(static_cast<long>(x.size()), x.data(), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(y[i].bits, nearest_bf16(x[i])) << x[i];
  }
}

TEST_P(Math, SixteenBitSpecialValues) {
  const std::uint32_t loud_bits = 0x7f800001u;
  float loud;
  std::memcpy(&loud, &loud_bits, 4);
  const std::vector<float> x{kInf, -kInf, kNan, loud, 0.0f, -0.0f};
  std::vector<Bf16> b(x.size());
  std::vector<Fp16> h(x.size());
  k().float_to_bf16(6, x.data(), b.data());
  k().float_to_fp16(6, x.data(), h.data());
  const int bf16[] = {0x7f80, 0xff80, 0x7fc0, 0x7fc0, 0, 0x8000};
  const int fp16[] = {0x7c00, 0xfc00, 0x7e00, 0x7e00, 0, 0x8000};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(b[i].bits, bf16[i]) << i;
    EXPECT_EQ(h[i].bits, fp16[i]) << i;
  }
}

// All 65,536 halves widen to the value their fields spell out, and come back.
TEST_P(Math, EveryFp16SurvivesTheRoundTrip) {
  std::vector<Fp16> h(65536), back(65536);
  std::vector<float> f(65536);
  for (int i = 0; i < 65536; ++i) h[i].bits = static_cast<std::uint16_t>(i);
  k().fp16_to_float(65536, h.data(), f.data());
  k().float_to_fp16(65536, f.data(), back.data());
  for (int i = 0; i < 65536; ++i) {
    const int exponent = (i >> 10) & 31, mantissa = i & 1023;
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(f[i]));
      EXPECT_EQ(back[i].bits, i | 0x200);
      continue;
    }
    double want = exponent == 0 ? std::ldexp(mantissa, -24)
                                : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) want = kInf;
    EXPECT_EQ(f[i], (i & 0x8000) != 0 ? -want : want) << i;
    EXPECT_EQ(back[i].bits, i);
  }
}

// Midpoints between neighbouring halves go to the even one, values beside them
// to the nearer one, subnormal and overflowing ones included.
TEST_P(Math, Fp16RoundsToNearestEven) {
  for (int i = 0; i < 0x7bff; ++i) {
    const Fp16 pair[2] = {
        {static_cast<std::uint16_t>(i)}, {static_cast<std::uint16_t>(i + 1)}
    };
    float f[2];
    k().fp16_to_float(2, pair, f);
    const float mid = (f[0] + f[1]) / 2;
    const float x[3] = {
        std::nextafter(mid, 0.0f), mid, std::nextafter(mid, kInf)
    };
    Fp16 y[3];
    k().float_to_fp16(3, x, y);
    ASSERT_EQ(y[0].bits, i);
    ASSERT_EQ(y[1].bits, (i & 1) != 0 ? i + 1 : i);
    ASSERT_EQ(y[2].bits, i + 1);
  }
  const float x[2] = {65519.0f, 65520.0f};
  Fp16 y[2];
  k().float_to_fp16(2, x, y);
  EXPECT_EQ(y[0].bits, 0x7bff);
  EXPECT_EQ(y[1].bits, 0x7c00);
}

INSTANTIATE_TEST_SUITE_P(
    Tables,
    Math,
    testing::ValuesIn(usable_tables().begin(), usable_tables().end()),
    [](const auto& table) { return std::string(table.param->isa); }
);

}  // namespace
}  // namespace hearth::kernels
