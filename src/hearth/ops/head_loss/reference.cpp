// What head_loss means, in MLX's own ops and at least float32.
#include "hearth/ops/head_loss/terms_impl.h"
#include "hearth/ops/linear/op.h"

namespace hearth::ops {
namespace {

using namespace head_loss_terms;

// [tokens, vocabulary]. A dropped token's are those of zeros, so that nothing
// it holds can reach a gradient.
mx::array logits_of(
    const LossMath& on,
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

mx::array taken(
    const LossMath& on,
    const mx::array& l,
    const mx::array& targets
) {
  const auto column = mx::expand_dims(targets, -1, on.s);
  return mx::squeeze(mx::take_along_axis(l, column, -1, on.s), -1, on.s);
}

mx::array teacher_term(
    const LossMath& on,
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
    const LossMath& on,
    const mx::array& l,
    const LossTokens& tokens,
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
  const LossMath on{s};
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
  const LossMath on{s};
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
  const LossMath on{s};
  const auto wide = h.dtype() == mx::float64 ? mx::float64 : mx::float32;
  const auto [t, weight, counting] = tokens_of(on, targets, {}, wide);
  const auto l = logits_of(on, h, w, counting, soft_cap);
  const auto lse = mx::squeeze(on.lse(l), -1, s);
  const auto each = on.minus(taken(on, l, t), lse);
  const auto out = mx::where(counting, each, mx::zeros_like(each, s), s);
  return mx::reshape(out, targets.shape(), s);
}

}  // namespace hearth::ops
