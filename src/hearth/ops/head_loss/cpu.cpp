// The head and its loss over our kernels: one primitive that makes the loss and
// both gradients, and one that scales them.
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/gemm.h"
#include "hearth/ops/head_loss/cpu_chunks.h"
#include "hearth/ops/head_loss/faces_impl.h"

namespace hearth::ops {
namespace {

using kernels::GemmScalar;
using Packed = std::shared_ptr<const PackedWeight>;

GemmScalar scalar(mx::Dtype t) {
  return t == mx::bfloat16 ? GemmScalar::bf16 : GemmScalar::f32;
}

// Inputs come as h, w, targets, weights[, teacher's logits | indices, log
// probabilities], all dense.
HeadLossTask task_of(
    const Arrays& in,
    const HeadLossOptions& options,
    const Packed& packed
) {
  HeadLossTask t;
  t.tokens = rows_of(in[0]);
  t.vocabulary = in[1].shape(0);
  t.dim = in[1].shape(1);
  t.type = scalar(in[0].dtype());
  t.w_type = scalar(in[1].dtype());
  t.h = in[0].data<void>();
  t.w = in[1].data<void>();
  t.packed = packed.get();
  t.targets = in[2].data<int>();
  t.weights = in[3].data<float>();
  t.terms = options.terms;
  t.scratch_limit = options.scratch_limit;
  if (in.size() == 5 && in[4].dtype() == mx::bfloat16) {
    t.teacher.half_logits = in[4].data<kernels::Bf16>();
  } else if (in.size() == 5) {
    t.teacher.logits = in[4].data<float>();
  } else if (in.size() == 6) {
    t.teacher.indices = in[4].data<int>();
    t.teacher.log_probs = in[5].data<float>();
    t.teacher.count = in[4].shape(-1);
  }
  return t;
}

// x * factor for both gradients; nothing is done where factor is 1 and their
// memory can be taken, which is every training step. One that is in its home
// has others added to it and cannot be scaled any more.
class HeadLossScale : public CpuOp {
 public:
  HeadLossScale(mx::Stream s, Home home) : CpuOp(s), home_(std::move(home)) {}
  HEARTH_OP_NAME(HeadLossScale)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    struct Part {
      const void* from;
      void* to;
      std::size_t count;
      bool half, home;
    };
    std::vector<Part> parts;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool home = home_ && home_->holds(in[i]);
      if (home)
        out[i].copy_shared_buffer(in[i]);
      else
        take_or_allocate(in[i], out[i]);
      parts.push_back(
          {in[i].data<void>(), out[i].data<void>(), in[i].size(),
           in[i].dtype() == mx::bfloat16, home}
      );
    }
    launch([parts,
            factor = in.back().data<float>()](const Execution& run) noexcept {
      for (const Part& p : parts) {
        if (*factor == 1 && p.from == p.to) continue;
        run.pool.parallel_for(
            p.count, 16384, [&](std::size_t begin, std::size_t end) {
              scale(
                  run, p.from, p.to, p.half, begin, end,
                  p.home ? std::nanf("") : *factor
              );
            }
        );
      }
    });
  }

 private:
  Home home_;

  static void scale(
      const Execution& run,
      const void* from,
      void* to,
      bool half,
      std::size_t begin,
      std::size_t end,
      float factor
  ) {
    const auto n = static_cast<long>(end - begin);
    const auto& k = *run.kernels.head_loss;
    if (half) {
      k.scale_bf16(
          static_cast<const kernels::Bf16*>(from) + begin, n, factor,
          static_cast<kernels::Bf16*>(to) + begin
      );
    } else {
      k.scale_f32(
          static_cast<const float*>(from) + begin, n, factor,
          static_cast<float*>(to) + begin
      );
    }
  }
};

// -> loss_sum, weight_sum, log_probs[, dh[, dw]]
class FusedHeadLoss : public CpuOp {
 public:
  FusedHeadLoss(mx::Stream s, HeadLossOptions options, Packed packed)
      : CpuOp(s), options_(std::move(options)), packed_(std::move(packed)) {}
  HEARTH_OP_NAME(FusedHeadLoss)

  void eval_cpu(const Arrays& in, Arrays& out) override {
    HeadLossTask t = task_of(in, options_, packed_);
    const Execution now = current_execution();
    const auto& family = gemm_family(now.kernels, t.type);
    // Only whether they are null matters to the size.
    if (options_.input_gradient) t.dh = &t;
    const auto room =
        scratch(stream(), head_loss_scratch_bytes(t, family, now.pool.size()));
    if (options_.weight_gradient && options_.home) {
      t.dw_begun = options_.home->enter(out[4]);
    }
    allocate(out);
    t.loss_sum = out[0].data<float>();
    t.weight_sum = out[1].data<float>();
    t.log_probs = out[2].data<float>();
    t.dh = options_.input_gradient ? out[3].data<void>() : nullptr;
    if (options_.weight_gradient) t.dw = out[4].data<float>();
    launch([t, room, &family, keep = packed_](const Execution& run) noexcept {
      run_head_loss(run.pool, run.kernels, family, t, room->data());
    });
  }

  static Arrays make(
      const Arrays& in,
      HeadLossOptions options,
      Packed packed,
      mx::Stream s
  ) {
    std::vector<mx::Shape> shapes{{}, {}, in[2].shape()};
    std::vector<mx::Dtype> types(3, mx::float32);
    // The weight's gradient is made of the same logits as the input's.
    if (options.weight_gradient) options.input_gradient = true;
    if (options.input_gradient) {
      shapes.push_back(in[0].shape());
      types.push_back(in[0].dtype());
    }
    if (options.weight_gradient) {
      shapes.push_back(in[1].shape());
      types.push_back(mx::float32);
    }
    return mx::array::make_arrays(
        std::move(shapes), types,
        std::make_shared<FusedHeadLoss>(s, options, std::move(packed)), in
    );
  }

  Arrays vjp(
      const Arrays&,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays& out
  ) override {
    Arrays in;
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> types;
    for (const int i : argnums) {
      const auto at = static_cast<std::size_t>(i) + 3;
      if (i > 1 || at >= out.size()) {
        throw Error(
            fmt::format(
                "[ops.head_loss] the gradient of {} must be asked for in "
                "HeadLossOptions, got a loss built without it",
                i == 0 ? "h" : "w"
            )
        );
      }
      in.push_back(out[at]);
      shapes.push_back(out[at].shape());
      types.push_back(out[at].dtype());
    }
    in.push_back(dense(ct[0], stream()));
    return mx::array::make_arrays(
        std::move(shapes), types,
        std::make_shared<HeadLossScale>(stream(), options_.home), in
    );
  }

 private:
  HeadLossOptions options_;
  Packed packed_;
};

// h, w, targets, weights (1) -> log_probs
class HeadLogProbs : public CpuOp {
 public:
  HeadLogProbs(mx::Stream s, HeadLossOptions options, Packed packed)
      : CpuOp(s), options_(std::move(options)), packed_(std::move(packed)) {}
  HEARTH_OP_NAME(HeadLogProbs)

  void eval_cpu(const Arrays& in, Arrays& out) override {
    HeadLossTask t = task_of(in, options_, packed_);
    const Execution now = current_execution();
    const auto& family = gemm_family(now.kernels, t.type);
    const auto room =
        scratch(stream(), head_loss_scratch_bytes(t, family, now.pool.size()));
    allocate(out);
    t.log_probs = out[0].data<float>();
    launch([t, room, &family, keep = packed_](const Execution& run) noexcept {
      float loss = 0, weight = 0;
      HeadLossTask task = t;
      task.loss_sum = &loss;
      task.weight_sum = &weight;
      run_head_loss(run.pool, run.kernels, family, task, room->data());
    });
  }

  // A cross-entropy whose weights are the negated upstream values, because
  // d log p = onehot - p.
  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    HeadLossOptions options = options_;
    options.input_gradient = true;
    options.weight_gradient = false;
    for (const int i : argnums) options.weight_gradient |= i == 1;
    const auto weights = mx::negative(dense(ct[0], stream()), stream());
    const auto out = FusedHeadLoss::make(
        {p[0], p[1], p[2], weights}, options, packed_, stream()
    );
    Arrays g;
    for (const int i : argnums)
      g.push_back(out[3 + static_cast<std::size_t>(i)]);
    return g;
  }

 private:
  HeadLossOptions options_;
  Packed packed_;
};

mx::array kept(const mx::array& a, mx::Dtype type, mx::Stream s) {
  return dense(mx::astype(mx::stop_gradient(a, s), type, s), s);
}

// h, w, targets and weights as the primitives take them.
Arrays common_inputs(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    mx::Stream s
) {
  with_dtype("ops.head_loss", h.dtype(), [](auto*) {});
  with_dtype("ops.head_loss", w.dtype(), [](auto*) {});
  const bool narrow = h.dtype() == mx::float32 && w.dtype() == mx::bfloat16;
  return {
      dense(h, s), dense(narrow ? mx::astype(w, mx::float32, s) : w, s),
      kept(targets, mx::int32, s),
      weights ? kept(*weights, mx::float32, s)
              : mx::ones(targets.shape(), mx::float32, s)
  };
}

}  // namespace

HeadLoss head_loss_cpu(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    const HeadLossOptions& options,
    const Teacher& teacher,
    Packed packed,
    mx::StreamOrDevice s
) {
  const auto stream = mx::to_stream(s);
  Arrays in = common_inputs(h, w, targets, weights, stream);
  if (teacher.logits) {
    const auto& l = *teacher.logits;
    const bool half = l.dtype() == mx::bfloat16;
    in.push_back(kept(l, half ? mx::bfloat16 : mx::float32, stream));
  } else if (teacher.indices) {
    in.push_back(kept(*teacher.indices, mx::int32, stream));
    in.push_back(kept(*teacher.log_probs, mx::float32, stream));
  }
  const auto out = FusedHeadLoss::make(in, options, std::move(packed), stream);
  return {out[0], out[1], out[2]};
}

mx::array head_log_probs_cpu(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    float soft_cap,
    Packed packed,
    const Home& home,
    mx::StreamOrDevice s
) {
  HeadLossOptions options;
  options.terms.soft_cap = soft_cap;
  options.home = home;
  const auto stream = mx::to_stream(s);
  return mx::array(
      targets.shape(), mx::float32,
      std::make_shared<HeadLogProbs>(stream, options, std::move(packed)),
      common_inputs(h, w, targets, {}, stream)
  );
}

}  // namespace hearth::ops
