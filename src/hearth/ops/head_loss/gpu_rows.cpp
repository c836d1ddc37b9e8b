#include "hearth/ops/head_loss/gpu_rows.h"

#include <limits>

#include "hearth/ops/compiled.h"
#include "hearth/ops/head_loss/terms_impl.h"

namespace hearth::ops {
namespace {

using namespace head_loss_terms;

// a[tokens] along rows of the vocabulary.
mx::array down(const mx::array& a, mx::StreamOrDevice s) {
  return mx::expand_dims(a, -1, s);
}

// A divergence of each row with its gradient by the student's log
// probabilities, had each of them moved alone.
struct Moved {
  mx::array value, by_log_prob;
};

// Over the whole vocabulary.
Moved dense_divergence(
    const LossMath& on,
    Divergence kind,
    const mx::array& lp,
    const mx::array& lq
) {
  const auto value = divergence(on, kind, lp, lq);
  const auto p = on.exp(lp), q = on.exp(lq);
  if (kind == Divergence::forward_kl) {
    return {value, mx::negative(q, on.s)};
  }
  if (kind == Divergence::reverse_kl) {
    return {value, on.plus(on.weighted(p, on.minus(lp, lq)), p)};
  }
  const auto lm = mx::log(on.times(on.plus(p, q), 0.5f), on.s);
  return {value, on.times(on.weighted(p, on.minus(lp, lm)), 0.5f)};
}

// Over the outcomes that the teacher lists and one more for the rest. There are
// few, so MLX differentiates it.
Moved listed_divergence(
    const LossMath& on,
    Divergence kind,
    const mx::array& lp,
    const mx::array& teacher
) {
  const auto lq = with_tail(on, teacher, kernels::kTailFloor);
  const auto f = [&](const Arrays& listed) {
    return Arrays{divergence(on, kind, with_tail(on, listed[0], 1e-20f), lq)};
  };
  const auto ones = mx::ones({lp.shape(0)}, mx::float32, on.s);
  const auto [value, gradient] = mx::vjp(f, {lp}, {ones});
  return {value[0], gradient[0]};
}

// The teacher's term of each row, T^2 D, and its gradient by the logits.
struct TeacherRows {
  mx::array value, gradient;
};
TeacherRows teacher_rows(
    const LossMath& on,
    const mx::array& l,
    const Arrays& teacher,
    Divergence kind,
    float temperature
) {
  const auto s = on.s;
  const auto student = on.times(l, 1 / temperature);
  const auto lse = on.lse(student);
  const auto lp = on.minus(student, lse);
  const auto p = on.exp(lp);
  // Every log probability is its logit less what all of them share.
  const auto project = [&](const mx::array& by_log_prob) {
    const auto shared = mx::sum(by_log_prob, -1, true, s);
    return mx::negative(mx::multiply(p, shared, s), s);
  };
  const float square = temperature * temperature;
  if (teacher.size() == 1) {
    const auto logits = on.times(on.wide(teacher[0]), 1 / temperature);
    const auto d =
        dense_divergence(on, kind, lp, on.minus(logits, on.lse(logits)));
    return {
        on.times(d.value, square),
        on.times(on.plus(project(d.by_log_prob), d.by_log_prob), temperature)
    };
  }
  const auto listed = mx::take_along_axis(lp, teacher[0], -1, s);
  const auto d = listed_divergence(on, kind, listed, on.wide(teacher[1]));
  const auto gradient = mx::scatter_add_axis(
      project(d.by_log_prob), teacher[0], d.by_log_prob, -1, s
  );
  return {on.times(d.value, square), on.times(gradient, temperature)};
}

// logits, targets, weights[, teacher's logits | indices, log probabilities]
// -> losses, log probabilities, gradient. Every kind of loss.
Arrays any_loss(
    const Arrays& in,
    mx::StreamOrDevice s,
    float soft_cap,
    float smoothing,
    float z_loss,
    float cross_entropy,
    Divergence kind,
    float divergence_weight,
    float temperature,
    float factor
) {
  const LossMath on{s};
  const auto &targets = in[1], &weights = in[2];
  const auto l = capped(on, on.wide(in[0]), soft_cap);
  const int vocabulary = l.shape(-1);
  const auto lse = on.lse(l);
  const auto p = on.exp(on.minus(l, lse));
  const auto flat_lse = mx::squeeze(lse, -1, s);
  const auto at_target =
      mx::equal(mx::arange(vocabulary, mx::int32, s), down(targets, s), s);
  const auto target =
      mx::squeeze(mx::take_along_axis(l, down(targets, s), -1, s), -1, s);
  auto each = on.minus(flat_lse, on.times(target, 1 - smoothing));
  each = on.minus(each, on.times(mx::mean(l, -1, false, s), smoothing));
  each = on.plus(each, on.times(mx::square(flat_lse, s), z_loss));
  each = on.times(each, cross_entropy);
  // p (1 + 2 z lse) less the target's share and everybody's.
  const auto rise = on.plus(on.like(lse, 1), on.times(lse, 2 * z_loss));
  const auto everybody = on.like(l, smoothing / static_cast<float>(vocabulary));
  auto slope = on.minus(mx::multiply(p, rise, s), everybody);
  slope = mx::where(
      at_target, on.minus(slope, on.like(slope, 1 - smoothing)), slope, s
  );
  slope = on.times(slope, cross_entropy);
  if (kind != Divergence::none) {
    const auto teacher =
        teacher_rows(on, l, {in.begin() + 3, in.end()}, kind, temperature);
    each = on.plus(each, on.times(teacher.value, divergence_weight));
    slope = on.plus(slope, on.times(teacher.gradient, divergence_weight));
  }
  if (soft_cap != 0) {
    const auto flat = mx::square(on.times(l, 1 / soft_cap), s);
    slope = mx::multiply(slope, on.minus(on.like(flat, 1), flat), s);
  }
  const auto counting = mx::not_equal(weights, on.like(weights, 0), s);
  const auto zero = mx::zeros_like(each, s);
  const auto dl = mx::where(
      down(counting, s),
      mx::multiply(slope, down(on.times(weights, factor), s), s),
      on.like(slope, 0), s
  );
  return {
      mx::where(counting, mx::multiply(weights, each, s), zero, s),
      mx::where(counting, on.minus(target, flat_lse), zero, s),
      mx::astype(dl, in[0].dtype(), s)
  };
}

RowLosses plain_losses(
    const LogitRows& rows,
    const LossTerms& terms,
    bool gradient,
    float factor,
    mx::StreamOrDevice s
) {
  const LossMath on{s};
  // On a CPU the op is a graph that keeps the logits' dtype throughout,
  // where the GPUs' kernels compute in float32.
  const bool cpu = mx::to_stream(s).device == mx::Device::cpu;
  const auto losses = [&](const Arrays& l) {
    const auto logits = cpu ? on.wide(l[0]) : l[0];
    return Arrays{mx::fast::cross_entropy(logits, rows.targets, s)};
  };
  const auto weights = on.times(rows.weights, terms.cross_entropy);
  std::optional<mx::array> dl;
  mx::array each = rows.weights;
  if (gradient) {
    const auto [value, by_logits] =
        mx::vjp(losses, {rows.logits}, {on.times(weights, factor)});
    each = value[0], dl = by_logits[0];
  } else {
    each = losses({rows.logits})[0];
  }
  const auto zero = mx::zeros_like(each, s);
  const auto counting = mx::not_equal(rows.weights, zero, s);
  return {
      mx::where(counting, mx::multiply(weights, each, s), zero, s),
      mx::where(counting, mx::negative(each, s), zero, s), dl
  };
}

}  // namespace

bool is_plain(const LossTerms& t) {
  return t.soft_cap == 0 && t.label_smoothing == 0 && t.z_loss == 0 &&
         t.divergence == Divergence::none;
}

RowLosses row_losses(
    const LogitRows& rows,
    const LossTerms& t,
    bool gradient,
    float factor,
    mx::StreamOrDevice s
) {
  if (is_plain(t)) return plain_losses(rows, t, gradient, factor, s);
  Arrays in{rows.logits, rows.targets, rows.weights};
  if (rows.teacher.logits) in.push_back(*rows.teacher.logits);
  if (rows.teacher.indices) {
    in.push_back(*rows.teacher.indices);
    in.push_back(*rows.teacher.log_probs);
  }
  const auto out = compiled(
      any_loss, in, s, t.soft_cap, t.label_smoothing, t.z_loss, t.cross_entropy,
      t.divergence, t.divergence_weight, t.temperature, factor
  );
  return {out[0], out[1], out[2]};
}

}  // namespace hearth::ops
