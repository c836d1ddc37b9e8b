// The product with a quantised weight over our kernels.
#include "hearth/base/error.h"
#include "hearth/ops/quantized_linear/faces_impl.h"

namespace hearth::ops {
namespace {

using kernels::PackedLayout;
using kernels::QuantMatrix;

// Kernels only read what they take as input.
QuantMatrix matrix(const mx::array& a) {
  return {
      const_cast<void*>(static_cast<const void*>(a.data<char>())), a.shape(-1),
      a.dtype() == mx::bfloat16
  };
}

// dy, packed -> dx
class QuantizedLinearGrad : public CpuOp {
 public:
  QuantizedLinearGrad(mx::Stream s, const PackedLayout& layout)
      : CpuOp(s), layout_(layout) {}
  HEARTH_OP_NAME(QuantizedLinearGrad)

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const long rows = rows_of(in[0]);
    const int threads = current_execution().pool.size();
    auto room = scratch(
        stream(), kernels::quant_gradient_scratch(layout_, rows, threads)
    );
    allocate(out);
    launch([layout = layout_, rows, room, dy = matrix(in[0]),
            packed = in[1].data<std::uint8_t>(),
            dx = matrix(out[0])](const Execution& run) noexcept {
      kernels::quant_gradient(
          run.kernels, run.pool, layout, packed, dy, rows, dx, room->data()
      );
    });
  }

 private:
  PackedLayout layout_;
};

// x, packed -> y
class QuantizedLinear : public CpuOp {
 public:
  QuantizedLinear(
      mx::Stream s,
      const PackedLayout& layout,
      QuantCompute compute
  )
      : CpuOp(s), layout_(layout), compute_(compute) {}
  HEARTH_OP_NAME(QuantizedLinear)

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const long rows = rows_of(in[0]);
    const int threads = current_execution().pool.size();
    auto room = scratch(
        stream(),
        kernels::quant_product_scratch(layout_, rows, compute_, threads)
    );
    allocate(out);
    launch([layout = layout_, compute = compute_, rows, room, x = matrix(in[0]),
            packed = in[1].data<std::uint8_t>(),
            y = matrix(out[0])](const Execution& run) noexcept {
      kernels::quant_product(
          run.kernels, run.pool, layout, packed, compute, x, rows, y,
          room->data()
      );
    });
  }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    for (const int i : argnums) {
      if (i != 0) {
        throw UsageError(
            "[ops.quantized_linear] a quantised weight has no gradient"
        );
      }
    }
    const mx::array dx(
        p[0].shape(), p[0].dtype(),
        std::make_shared<QuantizedLinearGrad>(stream(), layout_),
        {dense(ct[0], stream()), p[1]}
    );
    return Arrays(argnums.size(), dx);
  }

 private:
  PackedLayout layout_;
  QuantCompute compute_;
};

}  // namespace

mx::array quantized_linear_cpu(
    const mx::array& x,
    const QuantizedWeight& w,
    QuantCompute compute,
    mx::StreamOrDevice s
) {
  mx::Shape shape = x.shape();
  shape.back() = w.rows();
  return mx::array(
      std::move(shape), x.dtype(),
      std::make_shared<QuantizedLinear>(mx::to_stream(s), w.layout(), compute),
      {dense(x, s), *w.packed()}
  );
}

}  // namespace hearth::ops
