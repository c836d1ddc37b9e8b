// Checks what the head and its loss are given and chooses the form that runs
// them.
#include "hearth/ops/head_loss/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/head_loss/faces_impl.h"

namespace hearth::ops {
namespace {

using Packed = std::shared_ptr<const PackedWeight>;

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> what, Args&&... args) {
  throw UsageError(
      "[ops.head_loss] " + fmt::format(what, std::forward<Args>(args)...)
  );
}

void check_shapes(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const Packed& packed
) {
  if (w.ndim() != 2 || w.shape(0) == 0 || w.shape(1) == 0) {
    refuse(
        "w must have shape [vocabulary, k], none 0, got [{}]",
        fmt::join(w.shape(), ", ")
    );
  }
  if (h.ndim() == 0 || h.shape(-1) != w.shape(1)) {
    refuse(
        "h must have shape [..., {}] as w has [{}, {}], got [{}]", w.shape(1),
        w.shape(0), w.shape(1), fmt::join(h.shape(), ", ")
    );
  }
  const mx::Shape tokens(h.shape().begin(), h.shape().end() - 1);
  if (targets.shape() != tokens) {
    refuse(
        "targets must have shape [{}] as h has tokens, got [{}]",
        fmt::join(tokens, ", "), fmt::join(targets.shape(), ", ")
    );
  }
  if (!mx::issubdtype(targets.dtype(), mx::integer)) {
    refuse("targets must be integers, got another dtype");
  }
  if (packed && (packed->n() != w.shape(0) || packed->k() != w.shape(1))) {
    refuse(
        "packed must be of w's shape [{}, {}], got [{}, {}]", w.shape(0),
        w.shape(1), packed->n(), packed->k()
    );
  }
}

void check_terms(const LossTerms& t) {
  if (!(t.soft_cap >= 0)) {
    refuse("soft_cap must be 0 or more, got {}", t.soft_cap);
  }
  if (!(t.label_smoothing >= 0 && t.label_smoothing <= 1)) {
    refuse("label_smoothing must be in [0, 1], got {}", t.label_smoothing);
  }
  if (!(t.temperature > 0)) {
    refuse("temperature must be more than 0, got {}", t.temperature);
  }
}

void check_teacher(
    const LossTerms& terms,
    const Teacher& t,
    const mx::array& targets,
    int vocabulary
) {
  const bool sparse = t.indices && t.log_probs;
  const bool none = !t.logits && !t.indices && !t.log_probs;
  if (terms.divergence == Divergence::none) {
    if (!none) refuse("a teacher must come with a divergence, got none");
    return;
  }
  if (t.logits.has_value() == sparse || t.indices.has_value() != sparse) {
    refuse(
        "a divergence must have a teacher of logits or of indices and "
        "log_probs, got {}",
        none ? "none" : "a mixture"
    );
  }
  const auto expect = [&](const mx::array& a, int last, const char* what) {
    mx::Shape shape = targets.shape();
    shape.push_back(last);
    if (a.shape() != shape) {
      refuse(
          "the teacher's {} must have shape [{}], got [{}]", what,
          fmt::join(shape, ", "), fmt::join(a.shape(), ", ")
      );
    }
  };
  if (t.logits) return expect(*t.logits, vocabulary, "logits");
  const int k = t.indices->ndim() > 0 ? t.indices->shape(-1) : 0;
  if (k < 1 || k > std::min<long>(kernels::kMaxTeacherEntries, vocabulary)) {
    refuse(
        "a teacher must list between 1 and {} tokens, got {}",
        std::min<long>(kernels::kMaxTeacherEntries, vocabulary), k
    );
  }
  expect(*t.indices, k, "indices");
  expect(*t.log_probs, k, "log_probs");
}

HeadLoss chosen(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    const HeadLossOptions& options,
    const Teacher& teacher,
    Packed packed,
    mx::StreamOrDevice s
) {
  switch (face_of(s, h.dtype())) {
    case Face::gpu:
      return head_loss_gpu(h, w, targets, weights, options, teacher, s);
    case Face::reference:
      return head_loss_reference(
          h, w, targets, weights, options.terms, teacher, s
      );
    case Face::kernels:
      break;
  }
  return head_loss_cpu(
      h, w, targets, weights, options, teacher, std::move(packed), s
  );
}

}  // namespace

HeadLoss head_loss(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    const HeadLossOptions& options,
    const Teacher& teacher,
    std::shared_ptr<const PackedWeight> packed,
    mx::StreamOrDevice s
) {
  check_shapes(h, w, targets, packed);
  check_terms(options.terms);
  check_teacher(options.terms, teacher, targets, w.shape(0));
  if (weights && weights->shape() != targets.shape()) {
    refuse(
        "weights must have shape [{}] as targets have, got [{}]",
        fmt::join(targets.shape(), ", "), fmt::join(weights->shape(), ", ")
    );
  }
  const auto loss =
      chosen(h, w, targets, weights, options, teacher, std::move(packed), s);
  return {
      loss.loss_sum, mx::stop_gradient(loss.weight_sum, s),
      mx::stop_gradient(loss.log_probs, s)
  };
}

mx::array head_log_probs(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    float soft_cap,
    std::shared_ptr<const PackedWeight> packed,
    const Home& home,
    mx::StreamOrDevice s
) {
  check_shapes(h, w, targets, packed);
  LossTerms terms;
  terms.soft_cap = soft_cap;
  check_terms(terms);
  switch (face_of(s, h.dtype())) {
    case Face::gpu:
      return head_log_probs_gpu(h, w, targets, soft_cap, s);
    case Face::reference:
      return head_log_probs_reference(h, w, targets, soft_cap, s);
    case Face::kernels:
      break;
  }
  return head_log_probs_cpu(
      h, w, targets, soft_cap, std::move(packed), home, s
  );
}

}  // namespace hearth::ops
