// The linear layer over a weight that exists only as the kernels read it. One
// primitive multiplies by either order, so its gradient is itself.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/gemm.h"
#include "hearth/ops/linear/op.h"

namespace hearth::ops {
namespace {

using kernels::GemmFamily;
using kernels::GemmScalar;
using Packed = std::shared_ptr<const PackedWeight>;

// x[, bias] -> y: x W^T + bias forward, x W otherwise.
class PackedLinear : public CpuOp {
 public:
  PackedLinear(mx::Stream s, Packed packed, bool forward)
      : CpuOp(s), packed_(std::move(packed)), forward_(forward) {}
  HEARTH_OP_NAME(PackedLinear)
  bool is_equivalent(const mx::Primitive& other) const override {
    const auto& o = static_cast<const PackedLinear&>(other);
    return packed_ == o.packed_ && forward_ == o.forward_;
  }

  static mx::array make(
      Arrays in,
      const Packed& packed,
      bool forward,
      mx::Stream s
  ) {
    mx::Shape shape = in[0].shape();
    shape.back() = static_cast<int>(forward ? packed->n() : packed->k());
    const auto dtype = in[0].dtype();
    return mx::array(
        std::move(shape), dtype,
        std::make_shared<PackedLinear>(s, packed, forward), std::move(in)
    );
  }

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const GemmFamily& family = packed_->family();
    const auto room = scratch(
        stream(), gemm_scratch_bytes(family, current_execution().pool.size())
    );
    allocate(out);
    const long n = packed_->n(), k = packed_->k();
    kernels::GemmArgs g{
        .m = rows_of(in[0]),
        .n = forward_ ? n : k,
        .k = forward_ ? k : n,
        .a = in[0].data<void>(),
        .a_stride = forward_ ? k : n,
        .packed = forward_ ? packed_->forward() : packed_->backward(),
        .c = out[0].data<void>(),
        .c_stride = forward_ ? n : k,
        .c_type = family.operand
    };
    if (in.size() > 1) g.bias = in[1].data<float>();
    launch([=, &family, keep = packed_](const Execution& run) noexcept {
      run_gemm(run.pool, family, g, room->data());
    });
  }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    Arrays gradients;
    for (const int i : argnums) {
      gradients.push_back(i == 0 ? of_input(ct[0]) : of_bias(p[1], ct[0]));
    }
    return gradients;
  }

 private:
  Packed packed_;
  bool forward_;

  mx::array of_input(const mx::array& dy) {
    if (!packed_->backward()) {
      throw UsageError(
          "[ops.linear] packed must hold both orders for a gradient of x, got "
          "the forward order alone"
      );
    }
    return make({dense(dy, stream())}, packed_, !forward_, stream());
  }
  mx::array of_bias(const mx::array& bias, const mx::array& dy) {
    const auto rows = mx::reshape(
        mx::astype(dy, mx::float32, stream()), {-1, bias.shape(0)}, stream()
    );
    return mx::sum(rows, 0, false, stream());
  }
};

void check(
    const mx::array& x,
    const Packed& packed,
    const std::optional<mx::array>& bias
) {
  const auto refuse = [](const std::string& what) {
    throw UsageError("[ops.linear] " + what);
  };
  if (!packed) refuse("packed must be given, got none");
  const auto dtype =
      packed->family().operand == GemmScalar::bf16 ? mx::bfloat16 : mx::float32;
  if (x.ndim() == 0 || x.shape(-1) != packed->k() || x.dtype() != dtype) {
    refuse(
        fmt::format(
            "x must have shape [..., {}] and the dtype packed was made for, "
            "got [{}]",
            packed->k(), fmt::join(x.shape(), ", ")
        )
    );
  }
  if (bias && (bias->ndim() != 1 || bias->shape(0) != packed->n())) {
    refuse(
        fmt::format(
            "bias must have shape [{}], got [{}]", packed->n(),
            fmt::join(bias->shape(), ", ")
        )
    );
  }
}

}  // namespace

mx::array linear(
    const mx::array& x,
    std::shared_ptr<const PackedWeight> packed,
    const std::optional<mx::array>& bias,
    mx::StreamOrDevice s
) {
  check(x, packed, bias);
  if (!on_cpu(s)) {
    throw UsageError(
        "[ops.linear] a weight that is only packed must be multiplied on a CPU "
        "stream, got another"
    );
  }
  const auto stream = mx::to_stream(s);
  Arrays in{dense(x, stream)};
  if (bias) in.push_back(dense(mx::astype(*bias, mx::float32, stream), stream));
  const Packed held = std::move(packed);
  return PackedLinear::make(std::move(in), held, true, stream);
}

}  // namespace hearth::ops
