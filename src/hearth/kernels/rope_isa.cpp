#include "hearth/kernels/rope.h"
#include "hearth/kernels/simd/vec_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// Pairs half a head apart: two loads and two stores for each register's worth.
template <class T>
HEARTH_INLINE void rotate_halves(
    long half,
    const T* x,
    T* y,
    const float* cosines,
    F32 sign,
    const PastCaches& to
) {
  const float* sines = cosines + half;
  each_vector(0, half, [&](long i, auto lanes) {
    const F32 c = load(cosines + i, lanes), s = load(sines + i, lanes) * sign;
    const F32 a = load(x + i, lanes), b = load(x + half + i, lanes);
    to.store(y + i, fnma(b, s, a * c), lanes);
    to.store(y + half + i, fma(a, s, b * c), lanes);
  });
}

// One pair after the other; also the tail of the vector loop.
template <class T>
HEARTH_INLINE void rotate_pairs(
    long begin,
    long half,
    const T* x,
    T* y,
    const float* cosines,
    float sign
) {
  for (long i = begin; i < half; ++i) {
    const F32 c = splat(cosines[i]), s = splat(cosines[half + i] * sign);
    const F32 a = load(x + 2 * i, 1), b = load(x + 2 * i + 1, 1);
    store(y + 2 * i, fnma(b, s, a * c), 1);
    store(y + 2 * i + 1, fma(a, s, b * c), 1);
  }
}

// sign in odd lanes and its opposite in even ones.
HEARTH_INLINE F32 pair_signs(float sign) {
  alignas(64) float lane[kLanes];
  for (int l = 0; l < kLanes; ++l) lane[l] = l % 2 ? sign : -sign;
  return load(lane);
}

// y = x cos + swapped(x) (-sin, sin, ...), with cosines and sines doubled.
template <class T>
HEARTH_INLINE void rotate_interleaved(
    long half,
    const T* x,
    T* y,
    const float* cosines,
    float sign,
    F32 signs,
    const PastCaches& to
) {
  long i = 0;
  if constexpr (kLanes > 1) {
    for (; i + kLanes / 2 <= half; i += kLanes / 2) {
      const F32 c = doubled(cosines + i);
      const F32 s = doubled(cosines + half + i) * signs;
      const F32 v = load(x + 2 * i);
      to.store(y + 2 * i, fma(swap_pairs(v), s, v * c), Full{});
    }
  }
  rotate_pairs(i, half, x, y, cosines, sign);
}

template <class T>
void rotate(const RopeArgs<T>& a, long begin, long end) noexcept {
  const float sign = a.inverse ? -1.0f : 1.0f;
  const F32 signs = pair_signs(sign);
  const long width = 2 * a.half;
  // Every register's worth must be aligned, also the second half's.
  const bool apart = a.y != a.x && a.half % kLanes == 0;
  const PastCaches to(
      a.past_caches && apart, a.y, a.head_stride | a.token_stride
  );
  for (long t = begin; t < end; ++t) {
    const long position = a.positions[t];
    const bool known = position >= 0 && position < a.table_rows;
    const float* cosines = a.table + (known ? position : 0) * width;
    for (long h = 0; h < a.heads; ++h) {
      const long at = t * a.token_stride + h * a.head_stride;
      const T* x = a.x + at;
      T* y = a.y + at;
      if (!known) {
        each_vector(0, width, [&](long i, auto lanes) {
          store(y + i, splat(__builtin_nanf("")), lanes);
        });
      } else if (a.interleaved) {
        rotate_interleaved(a.half, x, y, cosines, sign, signs, to);
      } else {
        rotate_halves(a.half, x, y, cosines, splat(sign), to);
      }
      if (x == y) continue;
      each_vector(width, a.head_dim, [&](long i, auto lanes) {
        store(y + i, load(x + i, lanes), lanes);
      });
    }
  }
}

}  // namespace

const RopeKernels rope{.f32 = {rotate<float>}, .bf16 = {rotate<Bf16>}};

}  // namespace hearth::kernels::HEARTH_ISA
