#include "hearth/ops/head_loss/gpu_chunks.h"

#include <algorithm>
#include <cmath>

#include "hearth/ops/head_loss/gpu_rows.h"
#include "hearth/ops/linear/faces_impl.h"
#include "hearth/ops/pace.h"

namespace hearth::ops {
namespace {

using head_loss_terms::LossMath;
using head_loss_terms::tokens_of;

// Float16 has no room for gradients before the loss scale is on them: they are
// made 1,024 times as large, and float32 takes them from there.
float headroom(mx::Dtype t) {
  return t == mx::float16 ? 1024 : 1;
}

mx::array token_rows(const mx::array& a, int begin, int end, mx::Stream s) {
  mx::Shape from(a.ndim(), 0), to = a.shape();
  from[0] = begin, to[0] = end;
  return mx::slice(a, from, to, s);
}

class Chunks {
 public:
  Chunks(
      const HeadInputs& in,
      const LossTerms& terms,
      Wanted wanted,
      mx::Stream s
  )
      : in_(in), terms_(terms), wanted_(wanted), s_(s) {}

  HeadSums run(int chunk) {
    const int n = in_.h.shape(0);
    for (int begin = 0; begin < n; begin += chunk) {
      add(begin, std::min(n, begin + chunk));
    }
    return sums();
  }

 private:
  const HeadInputs& in_;
  const LossTerms& terms_;
  const Wanted wanted_;
  const mx::Stream s_;
  Arrays losses_, log_probs_, dh_;
  std::optional<mx::array> dw_;

  mx::array part(const mx::array& a, int begin, int end) const {
    return token_rows(a, begin, end, s_);
  }
  Teacher part(const Teacher& t, int begin, int end) const {
    Teacher out;
    if (t.logits) out.logits = part(*t.logits, begin, end);
    if (t.indices) out.indices = part(*t.indices, begin, end);
    if (t.log_probs) out.log_probs = part(*t.log_probs, begin, end);
    return out;
  }

  void add(int begin, int end) {
    const auto weights = part(in_.tokens.weights, begin, end);
    const auto counting =
        mx::expand_dims(part(in_.tokens.counting, begin, end), -1, s_);
    const auto rows = part(in_.h, begin, end);
    // What a token that does not count holds must reach no gradient.
    auto h = mx::where(counting, rows, mx::zeros_like(rows, s_), s_);
    // A chunk begins when the one before has ended: else all logits could be
    // there at once.
    if (!losses_.empty()) h = mx::depends({h}, before())[0];
    h = pace(h, s_);
    const auto logits = mx::matmul(h, mx::transpose(in_.w, s_), s_);
    const RowLosses l = row_losses(
        {logits, part(in_.tokens.targets, begin, end), weights,
         part(in_.teacher, begin, end)},
        terms_, wanted_.any(), headroom(h.dtype()), s_
    );
    losses_.push_back(mx::sum(l.losses, s_));
    log_probs_.push_back(l.log_probs);
    if (wanted_.h) dh_.push_back(unscaled(mx::matmul(*l.gradient, in_.w, s_)));
    if (!wanted_.w) return;
    const auto dw =
        mx::astype(weight_gradient_gpu(*l.gradient, h, s_), mx::float32, s_);
    dw_ = dw_ ? mx::add(*dw_, dw, s_) : dw;
  }

  Arrays before() const {
    Arrays out{losses_.back()};
    if (wanted_.h) out.push_back(dh_.back());
    if (wanted_.w) out.push_back(*dw_);
    return out;
  }

  mx::array unscaled(const mx::array& gradient) const {
    const float by = headroom(in_.h.dtype());
    if (by == 1) return gradient;
    return mx::multiply(
        mx::astype(gradient, mx::float32, s_), mx::array(1 / by), s_
    );
  }

  mx::array joined(const Arrays& parts) const {
    return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0, s_);
  }
  HeadSums sums() const {
    const auto zeros = [&](const mx::array& like) {
      return mx::zeros(like.shape(), mx::float32, s_);
    };
    if (losses_.empty()) {
      return {
          mx::array(0.0f), zeros(in_.tokens.weights), zeros(in_.h), zeros(in_.w)
      };
    }
    HeadSums out{
        mx::sum(mx::stack(losses_, 0, s_), s_), joined(log_probs_), {}, {}
    };
    if (wanted_.h) out.dh = joined(dh_);
    if (wanted_.w) out.dw = unscaled(*dw_);
    return out;
  }
};

}  // namespace

HeadInputs head_inputs(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    const Teacher& teacher,
    mx::Stream s
) {
  const auto fixed = [&](const mx::array& a) {
    return mx::stop_gradient(a, s);
  };
  const auto rows = [&](const std::optional<mx::array>& a) {
    if (!a) return a;
    return std::optional(mx::flatten(mx::atleast_2d(fixed(*a), s), 0, -2, s));
  };
  auto tokens = tokens_of(
      LossMath{s}, mx::astype(targets, mx::int32, s), weights, mx::float32
  );
  // A target beyond the vocabulary makes the loss NaN, and reads nothing.
  const auto last = mx::array(w.shape(0) - 1);
  const auto beyond = mx::greater(tokens.targets, last, s);
  tokens.targets = mx::minimum(tokens.targets, last, s);
  tokens.weights = mx::where(
      mx::logical_and(beyond, tokens.counting, s), mx::array(NAN),
      tokens.weights, s
  );
  Teacher t;
  t.logits = rows(teacher.logits);
  t.indices = rows(teacher.indices);
  t.log_probs = rows(teacher.log_probs);
  return {
      *rows(h), fixed(mx::astype(w, h.dtype(), s)), std::move(tokens),
      std::move(t)
  };
}

HeadSums head_sums(
    const HeadInputs& in,
    const LossTerms& terms,
    Wanted wanted,
    int chunk,
    mx::Stream s
) {
  return Chunks(in, terms, wanted, s).run(chunk);
}

}  // namespace hearth::ops
