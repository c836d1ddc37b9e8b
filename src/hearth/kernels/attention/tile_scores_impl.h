#pragma once
// Exponentials and masking of scores that lie keys by queries, so that a query
// is a lane.
#include "hearth/kernels/attention/mask_impl.h"
#include "hearth/kernels/attention/softmax_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// 2^(unit score + down) for scores far from infinite: the sum in fixed point
// has the exponent in its high bits and, below them, what is left for the
// polynomial in [1, 2), which is 1 at 1 and below 2 elsewhere. Two instructions
// fewer than exp2, relative error 3e-6; 0 from -inf, but also from NaN.
template <bool kBounded>
struct PowerOfTwo {
  F32 unit, down;
  PowerOfTwo(float by, F32 shift)
      : unit(splat(by * 0x1p23f)),
        down((shift + splat(127.0f)) * splat(0x1p23f)) {}
  HEARTH_INLINE F32 operator()(F32 score) const {
    constexpr float kOneToTwo[] = {
        5.09783983e-1f, 3.1240803e-1f, 1.66328505e-1f, -2.05164868e-3f,
        1.35311326e-2f
    };
    const __m512i mantissa = _mm512_set1_epi32(0x7fffff);
    const __m512i x = _mm512_max_epi32(
        _mm512_cvtps_epi32(fma(score, unit, down).v), _mm512_setzero_si512()
    );
    // (x & mantissa) | 1.0
    const __m512i rest = _mm512_ternarylogic_epi32(
        x, mantissa, _mm512_set1_epi32(0x3f800000), 0xea
    );
    const F32 p = polynomial(F32{_mm512_castsi512_ps(rest)}, kOneToTwo);
    // mantissa ? p : x
    return {_mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(mantissa, _mm512_castps_si512(p.v), x, 0xca)
    )};
  }
};
template <>
struct PowerOfTwo<false> {
  F32 unit, down;
  PowerOfTwo(float by, F32 shift) : unit(splat(by)), down(shift) {}
  HEARTH_INLINE F32 operator()(F32 score) const {
    return exp2<4>(fma(score, unit, down));
  }
};

// Stores the probabilities of two keys as pairs of bf16. They are rounded to
// nearest, ties upwards: two instructions fewer a pair than ties to even.
HEARTH_INLINE void store_pair(Bf16* to, F32 even, F32 odd) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  const __m512i low = _mm512_srli_epi32(
      _mm512_add_epi32(_mm512_castps_si512(even.v), half), 16
  );
  const __m512i high = _mm512_add_epi32(_mm512_castps_si512(odd.v), half);
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  // (high & upper) | low
  _mm512_store_si512(to, _mm512_ternarylogic_epi32(high, upper, low, 0xea));
}

// Sets the scores of a key to -inf for those of 16 queries from `query` on that
// do not see it.
HEARTH_INLINE void hide_unseen(
    const AttentionArgs& a,
    const DocumentIds& ids,
    long key,
    long query,
    float* scores
) {
  const bool there = key < a.keys;
  const Stretch seen = there ? queries_seeing(a, key, key) : Stretch{0, 0};
  const auto before = [&](long end) {
    return _bzhi_u32(
        ~0u, static_cast<unsigned>(most(0, least(16, end - query)))
    );
  };
  auto sees = static_cast<__mmask16>(before(seen.hi) & ~before(seen.lo));
  if (ids.keys != nullptr && there) {
    const __m512i own = _mm512_maskz_loadu_epi32(
        static_cast<__mmask16>(before(a.queries)), ids.queries + query
    );
    sees = _mm512_mask_cmpeq_epi32_mask(
        sees, own, _mm512_set1_epi32(ids.keys[key])
    );
  }
  store(
      scores, F32{_mm512_mask_mov_ps(splat(kMinusInf).v, sees, load(scores).v)}
  );
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
