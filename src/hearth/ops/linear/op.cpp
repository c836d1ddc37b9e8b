#include "hearth/ops/linear/op.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/linear/grad.h"

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

void check(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    const Packed& packed
) {
  const auto refuse = [](const std::string& what) {
    throw UsageError("[ops.linear] " + what);
  };
  if (w.ndim() != 2) {
    refuse(
        fmt::format(
            "w must have two dimensions, got [{}]", fmt::join(w.shape(), ", ")
        )
    );
  }
  if (x.ndim() == 0 || x.shape(-1) != w.shape(1)) {
    refuse(
        fmt::format(
            "x must have shape [..., {}] as w has [{}, {}], got [{}]",
            w.shape(1), w.shape(0), w.shape(1), fmt::join(x.shape(), ", ")
        )
    );
  }
  if (bias && (bias->ndim() != 1 || bias->shape(0) != w.shape(0))) {
    refuse(
        fmt::format(
            "bias must have shape [{}], got [{}]", w.shape(0),
            fmt::join(bias->shape(), ", ")
        )
    );
  }
  if (packed && (packed->n() != w.shape(0) || packed->k() != w.shape(1))) {
    refuse(
        fmt::format(
            "packed must be of w's shape [{}, {}], got [{}, {}]", w.shape(0),
            w.shape(1), packed->n(), packed->k()
        )
    );
  }
}

}  // namespace

mx::array linear_reference(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    mx::StreamOrDevice s
) {
  const auto weight = mx::transpose(mx::astype(w, x.dtype(), s), s);
  if (!bias) return mx::matmul(x, weight, s);
  return mx::addmm(mx::astype(*bias, x.dtype(), s), x, weight, 1, 1, s);
}

namespace {

// x and w as the primitive takes them.
Arrays operands(const mx::array& x, const mx::array& w, mx::StreamOrDevice s) {
  with_dtype("ops.linear", x.dtype(), [](auto*) {});
  with_dtype("ops.linear", w.dtype(), [](auto*) {});
  const bool narrow = x.dtype() == mx::float32 && w.dtype() == mx::bfloat16;
  return {dense(x, s), dense(narrow ? mx::astype(w, mx::float32, s) : w, s)};
}

mx::Shape shape_of(const mx::array& x, const mx::array& w) {
  mx::Shape shape = x.shape();
  shape.back() = w.shape(0);
  return shape;
}

}  // namespace

mx::array linear(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    std::shared_ptr<const PackedWeight> packed,
    mx::StreamOrDevice s
) {
  check(x, w, bias, packed);
  if (!ours(s, x.dtype())) return linear_reference(x, w, bias, s);
  Arrays in = operands(x, w, s);
  if (bias) in.push_back(dense(mx::astype(*bias, mx::float32, s), s));
  return mx::array(
      shape_of(x, w), x.dtype(),
      std::make_shared<Linear>(mx::to_stream(s), std::move(packed)),
      std::move(in)
  );
}

mx::array linear_add_reference(
    const mx::array& residual,
    const mx::array& x,
    const mx::array& w,
    float scale,
    mx::StreamOrDevice s
) {
  const auto y = linear_reference(x, w, {}, s);
  const auto by = mx::array(static_cast<double>(scale), y.dtype());
  return mx::add(residual, mx::multiply(y, by, s), s);
}

namespace {

// The third input must be as the product will be.
void check_third(
    const char* what,
    const mx::array& third,
    const mx::array& x,
    const mx::array& w
) {
  if (third.shape() == shape_of(x, w) && third.dtype() == x.dtype()) return;
  throw UsageError(
      fmt::format(
          "[ops.linear] {} must have x's dtype and shape [{}], got [{}]", what,
          fmt::join(shape_of(x, w), ", "), fmt::join(third.shape(), ", ")
      )
  );
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

mx::array linear_add(
    const mx::array& residual,
    const mx::array& x,
    const mx::array& w,
    float scale,
    std::shared_ptr<const PackedWeight> packed,
    mx::StreamOrDevice s
) {
  check(x, w, {}, packed);
  check_third("residual", residual, x, w);
  if (!ours(s, x.dtype())) {
    return linear_add_reference(residual, x, w, scale, s);
  }
  return linear_with(
      {.third = Third::residual, .scale = scale}, residual, x, w,
      std::move(packed), s
  );
}

mx::array linear_gated_reference(
    const mx::array& gate,
    const mx::array& x,
    const mx::array& w,
    Activation act,
    mx::StreamOrDevice s
) {
  return mx::multiply(
      activate_reference(gate, act, 1, s), linear_reference(x, w, {}, s), s
  );
}

mx::array linear_gated(
    const mx::array& gate,
    const mx::array& x,
    const mx::array& w,
    Activation act,
    std::shared_ptr<const PackedWeight> packed,
    mx::StreamOrDevice s
) {
  check(x, w, {}, packed);
  check_third("gate", gate, x, w);
  if (!ours(s, x.dtype())) return linear_gated_reference(gate, x, w, act, s);
  return linear_with(
      {.third = Third::gate, .act = act}, gate, x, w, std::move(packed), s
  );
}

}  // namespace hearth::ops
