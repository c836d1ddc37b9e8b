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

template <bool kCentred, class X>
HEARTH_INLINE Moments moments(long dim, float eps, const X* row) {
  const float n = 1.0f / static_cast<float>(dim);
  float mean = 0;
  if constexpr (kCentred) {
    mean = sum_over(dim, row, [](F32 v) { return v; }) * n;
  }
  const F32 m = splat(mean);
  const float squares = sum_over(dim, row, [m](F32 v) {
    const F32 c = kCentred ? v - m : v;
    return c * c;
  });
  return {mean, 1.0f / __builtin_sqrtf(squares * n + eps)};
}

// A row's last pass finds it in the cache and would leave memory idle: the next
// row is asked for meanwhile, here and in the gradient.
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
