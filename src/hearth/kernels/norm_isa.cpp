#include "hearth/kernels/norm.h"
#include "hearth/kernels/simd/vec_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

struct Moments {
  float mean, rstd;
};

// Two accumulators, so that a row is not bound by the latency of an addition.
template <class X, class F>
HEARTH_INLINE float sum_over(long dim, const X* row, F f) {
  F32 even = zero(), odd = zero();
  long i = 0;
  for (; i + 2 * kLanes <= dim; i += 2 * kLanes) {
    even += f(load(row + i));
    odd += f(load(row + i + kLanes));
  }
  each_vector(i, dim, [&](long j, auto lanes) {
    even += only(f(load(row + j, lanes)), lanes);
  });
  return reduce_add(even + odd);
}

template <class X>
HEARTH_INLINE Moments rms_moments(long dim, float eps, const X* row) {
  const float n = 1.0f / static_cast<float>(dim);
  const float squares = sum_over(dim, row, [](F32 v) { return v * v; });
  return {0, 1.0f / __builtin_sqrtf(squares * n + eps)};
}

// Mean and variance in one pass, about the mean of the first few elements: near
// enough to the whole row's that little cancels when it is taken off.
template <class X>
HEARTH_INLINE Moments centred_moments(long dim, float eps, const X* row) {
  constexpr long kFew = 64;
  const long few = dim < kFew ? dim : kFew;
  const float pivot =
      sum_over(few, row, [](F32 v) { return v; }) / static_cast<float>(few);
  const F32 p = splat(pivot);
  // Short chains of additions: fast with lanes, exact enough without.
  constexpr int kChains = kLanes > 1 ? 2 : 8;
  F32 sums[kChains], squares[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = squares[c] = zero();
  const auto add = [&](int c, F32 x) {
    sums[c] += x;
    squares[c] = fma(x, x, squares[c]);
  };
  long i = 0;
  for (; i + kChains * kLanes <= dim; i += kChains * kLanes) {
#pragma GCC unroll 8
    for (int c = 0; c < kChains; ++c) add(c, load(row + i + c * kLanes) - p);
  }
  each_vector(i, dim, [&](long j, auto lanes) {
    add(0, only(load(row + j, lanes) - p, lanes));
  });
  for (int c = 1; c < kChains; ++c) {
    sums[0] += sums[c], squares[0] += squares[c];
  }
  const float n = 1.0f / static_cast<float>(dim);
  const float off = reduce_add(sums[0]) * n;
  const float mean_square = reduce_add(squares[0]) * n;
  const float variance = __builtin_fmaf(-off, off, mean_square);
  return {
      pivot + off, 1.0f / __builtin_sqrtf((variance < 0 ? 0 : variance) + eps)
  };
}

template <bool kCentred, class X>
HEARTH_INLINE Moments moments(long dim, float eps, const X* row) {
  if constexpr (kCentred) return centred_moments(dim, eps, row);
  return rms_moments(dim, eps, row);
}

// The last pass over a row reads it from the cache and would leave the memory
// idle, so it prefetches the next row; so does that of the gradient.
template <bool kCentred, class X, class Y>
void forward(const NormArgs<X, Y>& a, long begin, long end) noexcept {
  const PastCaches to(a.past_caches, a.y, a.dim);
  for (long t = begin; t < end; ++t) {
    const long at = t * a.dim;
    const X* row = a.x + at;
    if (a.r != nullptr) {
      X* h = a.h + at;
      each_vector(0, a.dim, [&](long i, auto lanes) {
        store(h + i, load(row + i, lanes) + load(a.r + at + i, lanes), lanes);
      });
      row = h;
    }
    const Moments m = moments<kCentred>(a.dim, a.eps, row);
    const F32 mean = splat(m.mean), rstd = splat(m.rstd);
    const X* next = a.x + at + a.dim;
    each_vector(0, a.dim, [&](long i, auto lanes) {
      __builtin_prefetch(next + i);
      if (a.r != nullptr) __builtin_prefetch(a.r + at + a.dim + i);
      F32 v = load(row + i, lanes);
      if constexpr (kCentred) v = v - mean;
      v = v * rstd;
      if (a.w != nullptr) v = v * load(a.w + i, lanes);
      if (kCentred && a.b != nullptr) v = v + load(a.b + i, lanes);
      to.store(a.y + at + i, v, lanes);
    });
  }
}

template <class T, class Lanes>
HEARTH_INLINE void add_to(T* sum, F32 v, Lanes lanes) {
  store(sum, load(sum, lanes) + v, lanes);
}

// What a row's gradient needs beside the row: mean(g xhat) and mean(g).
struct GradSums {
  Moments m;
  float slope, shift;
};

// RMS norm takes one pass: the sum of g h is scaled when the norm is known.
template <bool kCentred, class X, class Y>
HEARTH_INLINE GradSums
grad_sums(const NormGradArgs<X, Y>& a, const X* h, const Y* dy) {
  const float n = 1.0f / static_cast<float>(a.dim);
  Moments m{0, 0};
  if constexpr (kCentred) m = moments<true>(a.dim, a.eps, h);
  const F32 mean = splat(m.mean);
  F32 squares = zero(), g_sum = zero(), gx_sum = zero();
  each_vector(0, a.dim, [&](long i, auto lanes) {
    F32 x = load(h + i, lanes), g = load(dy + i, lanes);
    if (a.w != nullptr) g = g * load(a.w + i, lanes);
    if constexpr (kCentred) {
      x = only(x - mean, lanes);
      g_sum += g;
    } else {
      squares = fma(x, x, squares);
    }
    gx_sum = fma(g, x, gx_sum);
  });
  if constexpr (!kCentred) {
    m.rstd = 1.0f / __builtin_sqrtf(reduce_add(squares) * n + a.eps);
  }
  return {m, reduce_add(gx_sum) * m.rstd * n, reduce_add(g_sum) * n};
}

// With xhat = (h - mean) rstd and g = dy w:
//   dx = rstd (g - xhat mean(g xhat) - mean(g)), the last for layer norm alone.
template <bool kCentred, class X, class Y>
void backward(
    const NormGradArgs<X, Y>& a,
    long begin,
    long end,
    float* dw,
    float* db
) noexcept {
  const PastCaches to(a.past_caches, a.dx, a.dim);
  const PastCaches to_branch(a.past_caches && a.dr != nullptr, a.dr, a.dim);
  for (long t = begin; t < end; ++t) {
    const long at = t * a.dim;
    const X* h = a.h + at;
    const Y* dy = a.dy + at;
    const GradSums sums = grad_sums<kCentred>(a, h, dy);
    const F32 mean = splat(sums.m.mean), rstd = splat(sums.m.rstd);
    const F32 slope = splat(sums.slope), shift = splat(sums.shift);
    each_vector(0, a.dim, [&](long i, auto lanes) {
      __builtin_prefetch(h + a.dim + i);
      __builtin_prefetch(dy + a.dim + i);
      F32 xhat = load(h + i, lanes);
      if constexpr (kCentred) xhat = xhat - mean;
      xhat = xhat * rstd;
      F32 g = load(dy + i, lanes);
      if (dw != nullptr) add_to(dw + i, g * xhat, lanes);
      if (kCentred && db != nullptr) add_to(db + i, g, lanes);
      if (a.w != nullptr) g = g * load(a.w + i, lanes);
      if constexpr (kCentred) g = g - shift;
      F32 d = rstd * fnma(xhat, slope, g);
      if (a.dh != nullptr) d = d + load(a.dh + at + i, lanes);
      to.store(a.dx + at + i, d, lanes);
      if (a.dr != nullptr) to_branch.store(a.dr + at + i, d, lanes);
    });
  }
}

template <class X, class Y>
constexpr NormKernels::Both<X, Y> both() {
  return {
      {forward<false, X, Y>, backward<false, X, Y>},
      {forward<true, X, Y>, backward<true, X, Y>}
  };
}

}  // namespace

const NormKernels norm{
    .f32 = both<float, float>(),
    .mixed = both<float, Bf16>(),
    .bf16 = both<Bf16, Bf16>(),
};

}  // namespace hearth::kernels::HEARTH_ISA
