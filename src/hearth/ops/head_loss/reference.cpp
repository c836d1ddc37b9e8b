// What head_loss means, in MLX's own ops.
#include "hearth/ops/head_loss/op.h"
#include "hearth/ops/linear/op.h"

namespace hearth::ops {
namespace {

// Short names for MLX's ops on one stream.
struct On {
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

struct Tokens {
  mx::array targets, weights, counting;  // [tokens]; dropped: 0, 0 and false
};

Tokens tokens_of(
    const On& on,
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

mx::array capped(const On& on, const mx::array& l, float soft_cap) {
  if (soft_cap == 0) return l;
  return on.times(mx::tanh(on.times(l, 1 / soft_cap), on.s), soft_cap);
}

// [tokens, vocabulary]. A dropped token's are those of zeros, so that nothing
// it holds can reach a gradient.
mx::array logits_of(
    const On& on,
    const mx::array& h,
    const mx::array& w,
    const mx::array& counting,
    float soft_cap
) {
  const auto s = on.s;
  const auto flat = mx::reshape(h, {-1, h.shape(-1)}, s);
  const auto kept = mx::where(
      mx::expand_dims(counting, -1, s), flat, mx::zeros_like(flat, s), s
  );
  const auto l = mx::matmul(
      on.wide(kept), mx::transpose(on.wide(mx::astype(w, h.dtype(), s)), s), s
  );
  return capped(on, l, soft_cap);
}

mx::array taken(const On& on, const mx::array& l, const mx::array& targets) {
  const auto column = mx::expand_dims(targets, -1, on.s);
  return mx::squeeze(mx::take_along_axis(l, column, -1, on.s), -1, on.s);
}

// The divergence of each row, from log probabilities of the same outcomes.
mx::array divergence(
    const On& on,
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
mx::array with_tail(const On& on, const mx::array& listed, float floor) {
  const auto rest = mx::subtract(
      on.like(listed, 1), mx::sum(on.exp(listed), -1, true, on.s), on.s
  );
  return mx::concatenate(
      {listed, mx::log(on.at_least(rest, floor), on.s)}, -1, on.s
  );
}

mx::array teacher_term(
    const On& on,
    const LossTerms& terms,
    const mx::array& l,
    const Teacher& t
) {
  const float by = 1 / terms.temperature;
  const auto student = on.times(l, by);
  auto lp = on.minus(student, on.lse(student));
  const auto rows = [&](const mx::array& a) {
    return mx::reshape(mx::stop_gradient(a, on.s), {-1, a.shape(-1)}, on.s);
  };
  if (t.logits) {
    const auto logits = on.times(on.wide(rows(*t.logits)), by);
    return divergence(
        on, terms.divergence, lp, on.minus(logits, on.lse(logits))
    );
  }
  lp = mx::take_along_axis(lp, rows(*t.indices), -1, on.s);
  return divergence(
      on, terms.divergence, with_tail(on, lp, 1e-20f),
      with_tail(on, on.wide(rows(*t.log_probs)), kernels::kTailFloor)
  );
}

HeadLoss loss_of_logits(
    const On& on,
    const mx::array& l,
    const Tokens& tokens,
    const mx::Shape& shape,
    const LossTerms& terms,
    const Teacher& teacher
) {
  const auto s = on.s;
  const auto& [t, weight, counting] = tokens;
  const auto lse = mx::squeeze(on.lse(l), -1, s);
  const auto target = taken(on, l, t);
  const float smooth = terms.label_smoothing;
  auto each = on.minus(lse, on.times(target, 1 - smooth));
  if (smooth > 0)
    each = on.minus(each, on.times(mx::mean(l, -1, false, s), smooth));
  each = on.plus(each, on.times(mx::square(lse, s), terms.z_loss));
  each = on.times(each, terms.cross_entropy);
  if (terms.divergence != Divergence::none) {
    const float k =
        terms.divergence_weight * terms.temperature * terms.temperature;
    each = on.plus(each, on.times(teacher_term(on, terms, l, teacher), k));
  }
  const auto zero = mx::zeros_like(each, s);
  const auto log_probs = mx::where(counting, on.minus(target, lse), zero, s);
  const auto losses =
      mx::where(counting, mx::multiply(weight, each, s), zero, s);
  return {
      mx::sum(losses, s), mx::stop_gradient(mx::sum(weight, s), s),
      mx::stop_gradient(mx::reshape(log_probs, shape, s), s)
  };
}

}  // namespace

HeadLoss head_loss_reference(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    const LossTerms& terms,
    const Teacher& teacher,
    mx::StreamOrDevice s
) {
  const On on{s};
  const auto wide = h.dtype() == mx::float64 ? mx::float64 : mx::float32;
  const auto tokens = tokens_of(on, targets, weights, wide);
  const auto l = logits_of(on, h, w, tokens.counting, terms.soft_cap);
  return loss_of_logits(on, l, tokens, targets.shape(), terms, teacher);
}

HeadLoss head_loss_unfused(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    const LossTerms& terms,
    std::shared_ptr<const PackedWeight> packed,
    mx::StreamOrDevice s
) {
  const On on{s};
  const auto tokens = tokens_of(on, targets, weights, mx::float32);
  const auto flat = mx::reshape(h, {-1, h.shape(-1)}, s);
  const auto product = linear(flat, w, {}, std::move(packed), s);
  const auto l = capped(on, on.wide(product), terms.soft_cap);
  return loss_of_logits(on, l, tokens, targets.shape(), terms, {});
}

mx::array head_log_probs_reference(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    float soft_cap,
    mx::StreamOrDevice s
) {
  const On on{s};
  const auto wide = h.dtype() == mx::float64 ? mx::float64 : mx::float32;
  const auto [t, weight, counting] = tokens_of(on, targets, {}, wide);
  const auto l = logits_of(on, h, w, counting, soft_cap);
  const auto lse = mx::squeeze(on.lse(l), -1, s);
  const auto each = on.minus(taken(on, l, t), lse);
  const auto out = mx::where(counting, each, mx::zeros_like(each, s), s);
  return mx::reshape(out, targets.shape(), s);
}

}  // namespace hearth::ops
