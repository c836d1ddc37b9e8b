// The linear layer over our kernels.
#include <algorithm>

#include "hearth/ops/linear/cpu_grad.h"
#include "hearth/ops/linear/faces_impl.h"

namespace hearth::ops {
namespace {

using kernels::GemmFamily;

// What the product ends in, and what the third input, where there is one, is
// for.
struct Epilogue {
  enum class Third : unsigned char { bias, residual, gate };
  Third third = Third::bias;
  float scale = 1;
  Activation act = Activation::silu;
  bool operator==(const Epilogue&) const = default;
};
using Third = Epilogue::Third;

// x, w[, bias, residual or gate] -> y
class Linear : public CpuOp {
 public:
  Linear(mx::Stream s, Packed packed, Epilogue end = {})
      : CpuOp(s), packed_(std::move(packed)), end_(end) {}
  HEARTH_OP_NAME(Linear)
  bool is_equivalent(const mx::Primitive& other) const override {
    const auto& o = static_cast<const Linear&>(other);
    return packed_ == o.packed_ && end_ == o.end_;
  }

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const auto &x = in[0], &w = in[1];
    const Execution now = current_execution();
    const GemmFamily& family = gemm_family(now.kernels, gemm_scalar(x.dtype()));
    const LinearOperand operand(family, w, packed_, true);
    const std::size_t own = gemm_scratch_bytes(family, now.pool.size());
    const auto room = scratch(stream(), own + operand.bytes());
    const long n = w.shape(0), k = w.shape(1);
    const void* third = in.size() > 2 ? in[2].data<void>() : nullptr;
    if (end_.third == Third::residual) {
      take_or_allocate(in[2], out[0]);
    } else {
      allocate(out);
    }
    kernels::GemmArgs g{
        .m = rows_of(x),
        .n = n,
        .k = k,
        .a = x.data<void>(),
        .a_stride = k,
        .c = out[0].data<void>(),
        .c_stride = n,
        .c_type = family.operand,
        .scale = end_.scale,
        .past_caches = product_goes_past_caches(rows_of(x), n, family)
    };
    if (end_.third == Third::bias) {
      g.bias = static_cast<const float*>(third);
    } else if (end_.third == Third::residual) {
      g.residual = third, g.residual_stride = n;
    } else {
      g.gate = third, g.gate_stride = n, g.act = end_.act;
    }
    launch([=, &family, keep = packed_](const Execution& run) noexcept {
      kernels::GemmArgs args = g;
      args.packed = operand.fill(run.pool, room->data() + own);
      run_gemm(run.pool, family, args, room->data());
    });
  }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    if (end_.third == Third::gate) return gated_vjp(p, ct, argnums);
    const bool residual = end_.third == Third::residual;
    const auto dy = dense(ct[0], stream());
    LinearUse use{
        .dy = dy, .w = p[1], .packed = packed_, .home = {}, .adapter = {}
    };
    bool want_x = false;
    for (const int i : argnums) {
      if (i == 0) want_x = true;
      if (i == 1) use.wanted.w = true;
      if (i == 2 && !residual) use.wanted.bias = true;
    }
    const auto g = linear_gradients(p[0], {use}, want_x, end_.scale, stream());
    const auto& of = g.parts[0];
    // What is not wanted is not picked.
    return pick(
        {g.x.value_or(dy), of.w.value_or(dy),
         residual ? dy : of.bias.value_or(dy)},
        argnums
    );
  }

 private:
  Packed packed_;
  Epilogue end_;

  // That of the product and the gate as two ops.
  Arrays gated_vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums
  ) {
    const auto apart = [this](const Arrays& v) {
      const auto y = linear(v[0], v[1], {}, packed_, stream());
      return Arrays{gated_mlp_activation(v[2], y, end_.act, stream())};
    };
    return pick(mx::vjp(apart, p, ct).second, argnums);
  }
};

// x and w as the primitive takes them.
Arrays operands(const mx::array& x, const mx::array& w, mx::StreamOrDevice s) {
  with_dtype("ops.linear", x.dtype(), [](auto*) {});
  with_dtype("ops.linear", w.dtype(), [](auto*) {});
  const bool narrow = x.dtype() == mx::float32 && w.dtype() == mx::bfloat16;
  return {dense(x, s), dense(narrow ? mx::astype(w, mx::float32, s) : w, s)};
}

mx::array linear_with(
    Epilogue end,
    const mx::array& third,
    const mx::array& x,
    const mx::array& w,
    Packed packed,
    mx::StreamOrDevice s
) {
  Arrays in = operands(x, w, s);
  in.push_back(dense(third, s));
  return mx::array(
      third.shape(), x.dtype(),
      std::make_shared<Linear>(mx::to_stream(s), std::move(packed), end),
      std::move(in)
  );
}

}  // namespace

mx::array linear_cpu(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    Packed packed,
    mx::StreamOrDevice s
) {
  Arrays in = operands(x, w, s);
  if (bias) in.push_back(dense(mx::astype(*bias, mx::float32, s), s));
  mx::Shape shape = x.shape();
  shape.back() = w.shape(0);
  return mx::array(
      std::move(shape), x.dtype(),
      std::make_shared<Linear>(mx::to_stream(s), std::move(packed)),
      std::move(in)
  );
}

mx::array linear_add_cpu(
    const mx::array& residual,
    const mx::array& x,
    const mx::array& w,
    float scale,
    Packed packed,
    mx::StreamOrDevice s
) {
  return linear_with(
      {.third = Third::residual, .scale = scale}, residual, x, w,
      std::move(packed), s
  );
}

mx::array linear_gated_cpu(
    const mx::array& gate,
    const mx::array& x,
    const mx::array& w,
    Activation act,
    Packed packed,
    mx::StreamOrDevice s
) {
  return linear_with(
      {.third = Third::gate, .act = act}, gate, x, w, std::move(packed), s
  );
}

}  // namespace hearth::ops
