#pragma once
// Elementary functions over F32. Polynomials were fitted to the range named
// beside each (least squares reweighted towards equal error, on 4,000 Chebyshev
// nodes, relative error); errors are stated in kernels/math.h and tested.
#include "hearth/kernels/simd/vec_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// c[0] + c[1] x + ... + c[N-1] x^(N-1), by Horner's rule.
template <int N>
HEARTH_INLINE F32 polynomial(F32 x, const float (&c)[N]) {
  F32 p = splat(c[N - 1]);
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) p = fma(p, x, splat(c[i]));
  return p;
}

// e^x = 2^n e^r with |r| <= ln(2)/2, e^r = 1 + r + r^2 p(r).
HEARTH_INLINE F32 exp(F32 x) {
  constexpr float kExp[] = {5.000000000e-01f, 1.666666567e-01f,
                            4.166629538e-02f, 8.333496749e-03f,
                            1.394465799e-03f, 1.979034860e-04f};
  // Beyond these the result is 0 or infinite; NaN passes both.
  x = min(splat(89.0f), max(splat(-104.0f), x));
  const F32 n = round(x * splat(1.44269504f));
  // ln(2) in two parts: n times the first is exact.
  F32 r = fnma(n, splat(0.693359375f), x);
  r = fnma(n, splat(-2.12194440e-4f), r);
  const F32 p = fma(r * r, polynomial(r, kExp), r) + splat(1.0f);
  return scale(p, n);
}

// x = 2^n (1 + f) with f in [sqrt(1/2) - 1, sqrt(2) - 1],
// log(1 + f) = f - f^2/2 + f^3 p(f).
HEARTH_INLINE F32 log(F32 x) {
  constexpr float kLog[] = {3.333331347e-01f, -2.500000894e-01f,
                            2.000211924e-01f, -1.666799635e-01f,
                            1.421955079e-01f, -1.240559146e-01f,
                            1.188817471e-01f, -1.167564094e-01f,
                            6.746601313e-02f};
  const Mask tiny = x < splat(0x1p-126f);
  const F32 y = select(tiny, x * splat(0x1p24f), x);
  // Taking sqrt(1/2) off the bits makes the exponent field change there.
  const I32 above = bits(y) - splat_int(0x3f3504f3);
  const I32 exponent = above & splat_int(static_cast<int>(0xff800000));
  const F32 m = from_bits(bits(y) - exponent);
  const F32 n =
      to_float(exponent) * splat(0x1p-23f) - select(tiny, splat(24.0f), zero());
  const F32 f = m - splat(1.0f), f2 = f * f;
  F32 r = f2 * f * polynomial(f, kLog);
  r = fma(n, splat(-2.12194440e-4f), r);
  r = fnma(splat(0.5f), f2, r) + f;
  r = fma(n, splat(0.693359375f), r);
  const F32 inf = splat(__builtin_inff());
  r = select(x < inf, r, x);
  r = select(zero() < x, r, splat(__builtin_nanf("")));
  r = select(x == zero(), neg(inf), r);
  return select(is_nan(x), x, r);
}

// Near 0, x + x^3 p(x^2); elsewhere 1 - 2 / (e^2|x| + 1).
HEARTH_INLINE F32 tanh(F32 x) {
  constexpr float kTanh[] = {
      -3.333328068e-01f, 1.333144158e-01f, -5.373971537e-02f, 2.063908987e-02f,
      -5.704990588e-03f
  };
  const F32 a = abs(x), x2 = x * x;
  const F32 near = fma(x * x2, polynomial(x2, kTanh), x);
  const F32 e = exp(a + a);
  const F32 far = splat(1.0f) - splat(2.0f) / (e + splat(1.0f));
  return select(a < splat(0.625f), near, copysign(far, x));
}

HEARTH_INLINE F32 sigmoid(F32 x) {
  return splat(1.0f) / (splat(1.0f) + exp(neg(x)));
}

// e^x with a relative error of 2^-17 in place of the last bit: five products.
HEARTH_INLINE F32 exp_quick(F32 x) {
  constexpr float kExp2[] = {
      1.0f, 6.931241751e-01f, 2.402409911e-01f, 5.590642989e-02f,
      9.582851082e-03f
  };
  x = min(splat(128.0f), max(splat(-150.0f), x * splat(1.44269504f)));
  const F32 n = round(x);
  return scale(polynomial(x - n, kExp2), n);
}

// Error of 2^-13, for results that are stored as bf16.
HEARTH_INLINE F32 sigmoid_quick(F32 x) {
  return reciprocal_quick(splat(1.0f) + exp_quick(neg(x)));
}

// Near 0, x + x p(x^2); elsewhere 1 - e^(-t + t q(t)) with t = |x|.
HEARTH_INLINE F32 erf(F32 x) {
  constexpr float kNear[] = {1.283791661e-01f, -3.761263192e-01f,
                             1.128366441e-01f, -2.685770765e-02f,
                             5.196957383e-03f, -8.097749087e-04f,
                             8.185247862e-05f};
  constexpr float kFar[] = {-1.285448968e-01f, -6.356565356e-01f,
                            -1.052029133e-01f, 2.261201106e-02f,
                            -2.892301185e-03f, 3.606490645e-05f,
                            4.820220056e-05f,  -5.150877769e-06f};
  const F32 t = abs(x), x2 = x * x;
  const F32 near = fma(x, polynomial(x2, kNear), x);
  // From 3.95 on the result rounds to 1.
  const F32 c = min(splat(3.95f), t);
  const F32 far = splat(1.0f) - exp(fma(c, polynomial(c, kFar), neg(c)));
  return select(t < splat(0.93f), near, copysign(far, x));
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
