// The head and its loss as a GPU runs them. Chunk after chunk of tokens: the
// product, the loss, and at once both gradients, so that no chunk's logits are
// kept or made again. The gradients are those of loss_sum; the weights of the
// tokens are in them already, and whatever loss_sum is multiplied by later
// scales them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/compiled.h"
#include "hearth/ops/head_loss/faces_impl.h"
#include "hearth/ops/head_loss/gpu_chunks.h"
#include "hearth/ops/head_loss/gpu_rows.h"

namespace hearth::ops {
namespace {

// Gradients scaled by what the loss was multiplied by.
Arrays scaled(const Arrays& in, mx::StreamOrDevice s, mx::Dtype to) {
  const auto wide = mx::multiply(mx::astype(in[0], mx::float32, s), in[1], s);
  return {mx::astype(wide, to, s)};
}

// Hands its last input through as its output. What was worked out beside it
// forward is there when a gradient is asked for.
class PassThrough : public mx::Primitive {
 public:
  using Primitive::Primitive;
  void eval_cpu(const Arrays& in, Arrays& out) override {
    out[0].copy_shared_buffer(in.back());
  }
  void eval_gpu(const Arrays& in, Arrays& out) override { eval_cpu(in, out); }
};

// h, w[, dh][, dw], loss -> loss
class HeadLossWithGradients : public PassThrough {
 public:
  HeadLossWithGradients(mx::Stream s, Wanted made)
      : PassThrough(s), made_(made) {}
  const char* name() const override { return "HeadLossWithGradients"; }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    Arrays out;
    for (const int i : argnums) {
      if (i > 1 || !(i == 0 ? made_.h : made_.w)) {
        throw Error(
            fmt::format(
                "[ops.head_loss] the gradient of {} must be asked for in "
                "HeadLossOptions, got a loss built without it",
                i == 0 ? "h" : "w"
            )
        );
      }
      const auto& kept = p[i == 1 && made_.h ? 3 : 2];
      const auto to = i == 0 ? p[0].dtype() : mx::float32;
      out.push_back(compiled(scaled, {kept, ct[0]}, stream(), to)[0]);
    }
    return out;
  }

 private:
  Wanted made_;
};

// h, w, targets, log probabilities -> log probabilities. The gradient is a
// cross-entropy whose weights are the negated upstream values, so the chunks
// run once more.
class LogProbsOnGpu : public PassThrough {
 public:
  LogProbsOnGpu(mx::Stream s, LossTerms terms, int chunk)
      : PassThrough(s), terms_(terms), chunk_(chunk) {}
  const char* name() const override { return "LogProbsOnGpu"; }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    Wanted wanted;
    for (const int i : argnums) (i == 0 ? wanted.h : wanted.w) = true;
    const auto weights = mx::negative(ct[0], stream());
    const auto in = head_inputs(p[0], p[1], p[2], weights, {}, stream());
    const auto g = head_sums(in, terms_, wanted, chunk_, stream());
    Arrays out;
    for (const int i : argnums) {
      out.push_back(
          i == 0 ? mx::reshape(
                       mx::astype(*g.dh, p[0].dtype(), stream()), p[0].shape(),
                       stream()
                   )
                 : *g.dw
      );
    }
    return out;
  }

 private:
  LossTerms terms_;
  int chunk_;
};

}  // namespace

int gpu_chunk_tokens(
    const LossTerms& terms,
    mx::Dtype activations,
    int vocabulary,
    int tokens_in_all
) {
  constexpr std::size_t kLeast = std::size_t{1} << 27, kMostBytes = kLeast * 8;
  constexpr std::size_t kStep = 256, kMost = 8192;
  // Logits and their gradient; or four float32 arrays of their size beside
  // them, which a divergence or a smoothed loss has at once.
  const std::size_t each =
      2 * mx::size_of(activations) + (is_plain(terms) ? 0 : 4 * sizeof(float));
  // All of a small batch's logits would be the most that its step takes.
  const std::size_t token = each * std::size_t(vocabulary);
  const std::size_t bytes =
      std::clamp(token * std::size_t(tokens_in_all) / 4, kLeast, kMostBytes);
  const std::size_t tokens = bytes / token;
  return static_cast<int>(std::clamp(tokens / kStep * kStep, kStep, kMost));
}

HeadLoss head_loss_gpu(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    const HeadLossOptions& options,
    const Teacher& teacher,
    mx::StreamOrDevice s,
    int chunk
) {
  const auto stream = mx::to_stream(s);
  if (chunk == 0) {
    chunk = gpu_chunk_tokens(
        options.terms, h.dtype(), w.shape(0), static_cast<int>(targets.size())
    );
  }
  const Wanted wanted{
      options.input_gradient || options.weight_gradient, options.weight_gradient
  };
  const auto in = head_inputs(h, w, targets, weights, teacher, stream);
  const HeadSums sums = head_sums(in, options.terms, wanted, chunk, stream);
  Arrays all{h, w};
  if (wanted.h) all.push_back(mx::reshape(*sums.dh, h.shape(), stream));
  if (wanted.w) all.push_back(*sums.dw);
  all.push_back(sums.loss);
  const mx::array loss(
      {}, mx::float32, std::make_shared<HeadLossWithGradients>(stream, wanted),
      std::move(all)
  );
  return {
      loss, mx::sum(in.tokens.weights, stream),
      mx::reshape(sums.log_probs, targets.shape(), stream)
  };
}

mx::array head_log_probs_gpu(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    float soft_cap,
    mx::StreamOrDevice s,
    int chunk
) {
  const auto stream = mx::to_stream(s);
  LossTerms terms;
  terms.soft_cap = soft_cap;
  if (chunk == 0) {
    chunk = gpu_chunk_tokens(
        terms, h.dtype(), w.shape(0), static_cast<int>(targets.size())
    );
  }
  const auto in = head_inputs(h, w, targets, {}, {}, stream);
  const auto sums = head_sums(in, terms, {}, chunk, stream);
  const auto log_probs = mx::reshape(sums.log_probs, targets.shape(), stream);
  return mx::array(
      targets.shape(), mx::float32,
      std::make_shared<LogProbsOnGpu>(stream, terms, chunk),
      {h, w, mx::astype(targets, mx::int32, stream), log_probs}
  );
}

}  // namespace hearth::ops
