#pragma once
// The row-wise arithmetic between the products: powers of two, the online
// softmax of the forward pass, probabilities and score gradients of the
// backward one. Row lengths are multiples of 16.
#include "hearth/kernels/attention/dot_impl.h"
#include "hearth/kernels/simd/math_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr float kLog2E = 1.44269504088896341f, kLn2 = 0.69314718055994531f;
constexpr float kMinusInf = -__builtin_inff();

// 2^n p for integral n, and 0 where it would be subnormal: subnormals are slow
// on some processors and too small to matter in a sum of probabilities.
HEARTH_INLINE F32 scale_normal(F32 p, F32 n) {
#if defined(__AVX512F__)
  const __mmask16 normal =
      _mm512_cmp_ps_mask(n.v, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
  return {_mm512_maskz_scalef_ps(normal, p.v, n.v)};
#else
  return scale(p, n);
#endif
}

constexpr float kExp2Short[] = {
    9.999992614e-1f, 6.931218147e-1f, 2.402474483e-1f, 5.591786032e-2f,
    9.570101908e-3f
};

#if defined(__AVX512F__)
// Rounds x to n by adding a number so large that the sum has no room for a
// fraction and its last bits are n; those are added to the exponent of 2^r with
// r = x - n. Ten instructions.
HEARTH_INLINE F32 exp2_short(F32 x) {
  const F32 great = splat(0x1.8p23f), n = x + great;
  const F32 p = polynomial(x - (n - great), kExp2Short);
  const __mmask16 normal =
      _mm512_cmp_ps_mask(x.v, _mm512_set1_ps(-125.0f), _CMP_NLT_UQ);
  return {_mm512_castsi512_ps(_mm512_maskz_add_epi32(
      normal, _mm512_castps_si512(p.v),
      _mm512_slli_epi32(_mm512_castps_si512(n.v), 23)
  ))};
}
#else
HEARTH_INLINE F32 exp2_short(F32 x) {
  x = max(splat(-151.0f), x);
  const F32 n = round(x);
  return scale(polynomial(x - n, kExp2Short), n);
}
#endif

// 2^x for x <= 0 or so; exactly 0 for -inf; NaN stays. Relative error 3e-6 at
// degree 4, which a bf16 cannot see, and 1e-7 at degree 6.
template <int kDegree>
HEARTH_INLINE F32 exp2(F32 x) {
  if constexpr (kDegree == 4) {
    return exp2_short(x);
  } else {
    constexpr float kLong[] = {
        1.0f,
        6.931472057e-1f,
        2.402264689e-1f,
        5.550328777e-2f,
        9.618488957e-3f,
        1.339993122e-3f,
        1.534581201e-4f
    };
    x = max(splat(-151.0f), x);
    const F32 n = round(x);
    return scale_normal(polynomial(x - n, kLong), n);
  }
}

inline float exp2_of(float x) {
  float lane[kLanes];
  store(lane, exp2<6>(splat(x)));
  return lane[0];
}

// s = cap tanh(s scale / cap)
inline void cap_row(float* s, long n, float scale_by, float cap) {
  const F32 in = splat(scale_by / cap), out = splat(cap);
  for (long j = 0; j < n; j += kLanes) {
    store(s + j, tanh(load(s + j) * in) * out);
  }
}

inline void multiply_row(float* s, long n, const float* by) {
  for (long j = 0; j < n; j += kLanes) {
    store(s + j, load(s + j) * load(by + j));
  }
}

inline float max_of_row(const float* s, long n) {
  F32 m[4] = {
      splat(kMinusInf), splat(kMinusInf), splat(kMinusInf), splat(kMinusInf)
  };
  long j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
    for (int i = 0; i < 4; ++i) m[i] = max(m[i], load(s + j + i * kLanes));
  }
  for (; j < n; j += kLanes) m[0] = max(m[0], load(s + j));
  return reduce_max(max(max(m[0], m[1]), max(m[2], m[3])));
}

// A row's running maximum, in units of the raw score, and sum.
struct RowState {
  float max, sum;
};

// Turns one row's scores, which `unit` scales to powers of two, into
// probabilities relative to the greatest score so far, each times its weight
// where weights are given. Returns the factor that rescales what was
// accumulated before to the same reference.
template <class Dot, bool kWeighted>
float softmax_row(
    const float* s,
    long n,
    float unit,
    const float* weight,
    RowState& state,
    typename Dot::Elem* p
) {
  const float before = state.max, here = max_of_row(s, n);
  const float greatest = here > before ? here : before;
  // A row that has seen nothing yet may take any finite reference.
  const float base = greatest == kMinusInf ? 0.0f : greatest * unit;
  const F32 u = splat(unit), b = splat(-base);
  F32 sum = zero();
  for (long j = 0; j < n; j += kLanes) {
    const F32 e = exp2<Dot::kDegree>(fma(load(s + j), u, b));
    sum += e;
    store(p + j, kWeighted ? e * load(weight + j) : e);
  }
  const float factor =
      before == greatest ? 1.0f : exp2_of(before * unit - base);
  state.max = greatest;
  state.sum = state.sum * factor + reduce_add(sum);
  return factor;
}

// Score gradients of two keys, as rows and, where operands are paired, as the
// pairs that B is made of.
HEARTH_INLINE void store_slopes(
    F32 even,
    F32 odd,
    float* row,
    float* next,
    float*
) {
  store(row, even);
  store(next, odd);
}
#if defined(__AVX512BF16__)
HEARTH_INLINE void store_slopes(
    F32 even,
    F32 odd,
    Bf16* row,
    Bf16* next,
    Bf16* pairs
) {
  const __m256i lo = narrow_bf16(even), hi = narrow_bf16(odd);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(row), lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(next), hi);
  const __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(hi), 16);
  _mm512_storeu_si512(pairs, _mm512_or_si512(_mm512_cvtepu16_epi32(lo), high));
}
#endif

// For two keys and a run of queries: makes probabilities p and score gradients
// ds (before the scale) of scores s and of the products dp of the output's
// gradient with the values. lse is per query, in powers of two, +inf for a
// query to leave out.
template <class Dot, bool kCap>
void gradient_rows(
    const float* const s[2],
    const float* const dp[2],
    long n,
    const float* lse,
    const float* delta,
    float unit,
    float cap,
    typename Dot::Elem* const p[2],
    typename Dot::Elem* const ds[2],
    typename Dot::Elem* pairs
) {
  const F32 u = splat(unit), back = splat(kCap ? 1.0f / cap : 0.0f);
  for (long j = 0; j < n; j += kLanes) {
    F32 g[2];
    for (int i = 0; i < 2; ++i) {
      const F32 score = load(s[i] + j);
      const F32 e = exp2<Dot::kDegree>(fma(score, u, neg(load(lse + j))));
      g[i] = e * (load(dp[i] + j) - load(delta + j));
      if constexpr (kCap) {
        const F32 t = max(splat(-1.0f), score * back);
        g[i] *= fnma(t, t, splat(1.0f));
      }
      store(p[i] + j, e);
    }
    store_slopes(g[0], g[1], ds[0] + j, ds[1] + j, pairs + Dot::kPair * j);
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
