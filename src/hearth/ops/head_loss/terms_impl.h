#pragma once
// The loss in MLX's own ops, as the definition and what a GPU runs share it:
// which tokens count, the soft cap, the divergences.
#include "hearth/ops/head_loss/op.h"

namespace hearth::ops::head_loss_terms {

// Short names for MLX's ops on one stream.
struct LossMath {
  mx::StreamOrDevice s;
  mx::array like(const mx::array& a, float x) const {
    return mx::array(x, a.dtype());
  }
  mx::array wide(const mx::array& a) const {
    return a.dtype() == mx::float64 ? a : mx::astype(a, mx::float32, s);
  }
  mx::array times(const mx::array& a, float x) const {
    return mx::multiply(a, like(a, x), s);
  }
  mx::array plus(const mx::array& a, const mx::array& b) const {
    return mx::add(a, b, s);
  }
  mx::array minus(const mx::array& a, const mx::array& b) const {
    return mx::subtract(a, b, s);
  }
  mx::array sum(const mx::array& a) const { return mx::sum(a, -1, false, s); }
  // MLX's exp is no better in float64 than in float32 on the CPU.
  mx::array exp(const mx::array& a) const {
    if (a.dtype() != mx::float64) return mx::exp(a, s);
    return plus(mx::expm1(a, s), like(a, 1));
  }
  mx::array at_least(const mx::array& a, float x) const {
    return mx::maximum(a, like(a, x), s);
  }
  // log of the sum of exponentials over the last axis, which is kept.
  mx::array lse(const mx::array& l) const {
    const auto m = mx::stop_gradient(mx::max(l, -1, true, s), s);
    const auto e = mx::sum(exp(minus(l, m)), -1, true, s);
    return plus(m, mx::log(e, s));
  }
  // p * x, and 0 where p is: there x may be infinite, in value and gradient.
  mx::array weighted(const mx::array& p, const mx::array& x) const {
    const auto zero = mx::zeros_like(p, s);
    const auto some = mx::not_equal(p, zero, s);
    return mx::multiply(
        mx::where(some, p, zero, s), mx::where(some, x, zero, s), s
    );
  }
};

struct LossTokens {
  mx::array targets, weights, counting;  // [tokens]; dropped: 0, 0 and false
};

inline LossTokens tokens_of(
    const LossMath& on,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    mx::Dtype type
) {
  const auto s = on.s;
  const auto t = mx::reshape(targets, {-1}, s);
  const auto zero = mx::zeros(t.shape(), type, s);
  const auto given =
      weights
          ? mx::astype(
                mx::stop_gradient(mx::reshape(*weights, {-1}, s), s), type, s
            )
          : mx::ones(t.shape(), type, s);
  const auto none = mx::zeros_like(t, s);
  const auto w = mx::where(mx::greater_equal(t, none, s), given, zero, s);
  return {mx::maximum(t, none, s), w, mx::not_equal(w, zero, s)};
}

inline mx::array capped(
    const LossMath& on,
    const mx::array& l,
    float soft_cap
) {
  if (soft_cap == 0) return l;
  return on.times(mx::tanh(on.times(l, 1 / soft_cap), on.s), soft_cap);
}

// The divergence of each row, from log probabilities of the same outcomes.
inline mx::array divergence(
    const LossMath& on,
    Divergence kind,
    const mx::array& lp,
    const mx::array& lq
) {
  const auto p = on.exp(lp), q = on.exp(lq);
  if (kind == Divergence::forward_kl) {
    return on.sum(on.weighted(q, on.minus(lq, lp)));
  }
  if (kind == Divergence::reverse_kl) {
    return on.sum(on.weighted(p, on.minus(lp, lq)));
  }
  const auto lm = mx::log(on.times(on.plus(p, q), 0.5f), on.s);
  return on.times(
      on.plus(
          on.sum(on.weighted(q, on.minus(lq, lm))),
          on.sum(on.weighted(p, on.minus(lp, lm)))
      ),
      0.5f
  );
}

// All that is not listed as one more outcome.
inline mx::array with_tail(
    const LossMath& on,
    const mx::array& listed,
    float floor
) {
  const auto rest = mx::subtract(
      on.like(listed, 1), mx::sum(on.exp(listed), -1, true, on.s), on.s
  );
  return mx::concatenate(
      {listed, mx::log(on.at_least(rest, floor), on.s)}, -1, on.s
  );
}

}  // namespace hearth::ops::head_loss_terms
