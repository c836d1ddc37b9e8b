#pragma once
// Reductions over a row of logits, and the student's and the teacher's
// distributions as the loss reads them.
#include "hearth/kernels/head_loss.h"
#include "hearth/kernels/simd/math_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

inline float larger(float a, float b) {
  return a > b ? a : b;
}

template <class T>
float row_max(const T* x, long n) {
  float m = -__builtin_inff();
  long i = 0;
  if (n >= kLanes) {
    F32 most = load(x);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      most = max(load(x + i), most);
    }
    m = reduce_max(most);
  }
  for (; i < n; ++i) {
    float lane[kLanes];
    store(lane, load(x + i, 1));
    m = larger(lane[0], m);
  }
  return m;
}

// Sum of exp((x - m) * by). Two alternating sums hide the addition's latency.
template <class T>
float sum_exp(const T* x, long n, float m, float by) {
  const F32 shift = splat(m), scale_by = splat(by);
  F32 sums[2] = {zero(), zero()};
  each_vector(0, n, [&](long i, auto lanes) {
    const F32 e = exp((load(x + i, lanes) - shift) * scale_by);
    sums[i / kLanes & 1] += only(e, lanes);
  });
  return reduce_add(sums[0] + sums[1]);
}

inline float sum(const float* x, long n) {
  F32 total = zero();
  each_vector(0, n, [&](long i, auto lanes) { total += load(x + i, lanes); });
  return reduce_add(total);
}

// log p = x * by - lse
struct LogSoftmax {
  float by, lse;
};
template <class T>
LogSoftmax log_softmax(const T* x, long n, float by) {
  const float m = row_max(x, n);
  return {by, m * by + __builtin_logf(sum_exp(x, n, m, by))};
}

// p * log_ratio, where 0 log 0 is 0.
HEARTH_INLINE F32 weighted(F32 p, F32 log_ratio) {
  return select(p == zero(), zero(), p * log_ratio);
}

// What one outcome of probabilities p (student) and q (teacher) adds to the
// divergence, and the slope of the divergence in p, less what is the same for
// all outcomes. With c = sum of p * slope, d D / d logit = p * (slope - c).
struct Term {
  F32 value, slope;
};
template <Divergence kind>
HEARTH_INLINE Term divergence_term(F32 p, F32 lp, F32 q, F32 lq) {
  if constexpr (kind == Divergence::forward_kl) {
    return {weighted(q, lq - lp), zero() - q / p};
  } else if constexpr (kind == Divergence::reverse_kl) {
    return {weighted(p, lp - lq), lp - lq};
  } else {
    const F32 half = splat(0.5f);
    const F32 lm = log(half * (p + q));
    const F32 slope = half * (lp - lm);
    return {half * weighted(q, lq - lm) + weighted(p, slope), slope};
  }
}

inline float first_lane(F32 x) {
  float lane[kLanes];
  store(lane, x);
  return lane[0];
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
