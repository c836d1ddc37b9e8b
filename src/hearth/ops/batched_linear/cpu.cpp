// Linear layers side by side over our kernels.
#include <algorithm>

#include "hearth/ops/batched_linear/faces_impl.h"
#include "hearth/ops/gemm.h"

namespace hearth::ops {
namespace {

using kernels::GemmFamily;
using kernels::GemmScalar;

GemmScalar scalar_of(const mx::array& x) {
  return x.dtype() == mx::bfloat16 ? GemmScalar::bf16 : GemmScalar::f32;
}

// Sizes of one of the products, and where the operands of item i lie.
struct BatchShape {
  long count, m, n, k, item;  // item: bytes of an element
  BatchShape(const mx::array& x, const mx::array& w)
      : count(x.shape(0)),
        m(x.shape(1)),
        n(w.shape(1)),
        k(w.shape(2)),
        item(static_cast<long>(x.itemsize())) {}
  template <class Byte>
  Byte* at(Byte* data, long i, long elements) const {
    return data + i * elements * item;
  }
};

// What one product needs on so many threads: the kernel's own scratch, and
// before it the packed operand. Weight gradients pack x by blocks themselves.
std::size_t item_scratch(
    const GemmFamily& family,
    const BatchShape& s,
    int threads
) {
  const std::size_t packed =
      std::max(family.packed_bytes(s.n, s.k), family.packed_bytes(s.k, s.n));
  return gemm_scratch_bytes(family, threads) +
         std::max(
             (packed + 63) / 64 * 64,
             weight_gradient_scratch_bytes(family, s.m, s.k, threads)
         );
}

bool goes_whole(const BatchShape& s, int threads) {
  return s.count >= threads;
}

std::size_t batch_scratch(
    const GemmFamily& family,
    const BatchShape& s,
    int threads
) {
  return goes_whole(s, threads)
             ? item_scratch(family, s, 1) * static_cast<std::size_t>(threads)
             : item_scratch(family, s, threads);
}

// body(pool, i, scratch) for every item, on a thread of its own or on all.
template <class Body>
void each_item(
    ThreadPool& pool,
    const GemmFamily& family,
    const BatchShape& s,
    std::byte* scratch,
    const Body& body
) {
  if (!goes_whole(s, pool.size())) {
    for (long i = 0; i < s.count; ++i) body(pool, i, scratch);
    return;
  }
  const std::size_t share = item_scratch(family, s, 1);
  pool.run([&](int worker) {
    ThreadPool alone(1);
    for (long i = worker; i < s.count; i += pool.size()) {
      body(alone, i, scratch + share * static_cast<std::size_t>(worker));
    }
  });
}

// y = x w^T, or dx = dy w: what is not packed comes first.
struct BatchProduct {
  const std::byte *left, *w;
  std::byte* out;
  bool forward;
};
void multiply_item(
    ThreadPool& pool,
    const GemmFamily& family,
    const BatchShape& s,
    const BatchProduct& p,
    long i,
    std::byte* scratch
) {
  const long inner = p.forward ? s.k : s.n, outer = p.forward ? s.n : s.k;
  std::byte* packed = scratch + gemm_scratch_bytes(family, pool.size());
  pack_gemm(
      pool, family,
      {.source = s.at(p.w, i, s.n * s.k),
       .type = family.operand,
       .stride = s.k,
       .by_column = p.forward,
       .n = outer,
       .k = inner,
       .packed = packed}
  );
  run_gemm(
      pool, family,
      {.m = s.m,
       .n = outer,
       .k = inner,
       .a = s.at(p.left, i, s.m * inner),
       .a_stride = inner,
       .packed = packed,
       .c = s.at(p.out, i, s.m * outer),
       .c_stride = outer,
       .c_type = family.operand},
      scratch
  );
}

// dy, x, w -> [dx][, dw]
class BatchedLinearGrad : public CpuOp {
 public:
  BatchedLinearGrad(mx::Stream s, bool dx, bool dw)
      : CpuOp(s), dx_(dx), dw_(dw) {}
  HEARTH_OP_NAME(BatchedLinearGrad)

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const auto &dy = in[0], &x = in[1], &w = in[2];
    const Execution now = current_execution();
    const GemmFamily& family = gemm_family(now.kernels, scalar_of(x));
    const BatchShape shape(x, w);
    const auto room =
        scratch(stream(), batch_scratch(family, shape, now.pool.size()));
    allocate(out);
    auto* dx = dx_ ? out[0].data<std::byte>() : nullptr;
    float* dw = dw_ ? out.back().data<float>() : nullptr;
    launch([=, &family, dy = dy.data<std::byte>(), x = x.data<std::byte>(),
            w = w.data<std::byte>()](const Execution& run) noexcept {
      const auto item = [&](ThreadPool& pool, long i, std::byte* place) {
        if (dx)
          multiply_item(pool, family, shape, {dy, w, dx, false}, i, place);
        if (!dw) return;
        const WeightGradientOf part{
            shape.at(dy, i, shape.m * shape.n), shape.n, shape.n,
            dw + i * shape.n * shape.k
        };
        weight_gradients(
            pool, family,
            {.tokens = shape.m,
             .k = shape.k,
             .x = shape.at(x, i, shape.m * shape.k),
             .x_stride = shape.k},
            {&part, 1}, place
        );
      };
      each_item(run.pool, family, shape, room->data(), item);
    });
  }

 private:
  bool dx_, dw_;
};

// x, w -> y
class BatchedLinear : public CpuOp {
 public:
  using CpuOp::CpuOp;
  HEARTH_OP_NAME(BatchedLinear)

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const Execution now = current_execution();
    const GemmFamily& family = gemm_family(now.kernels, scalar_of(in[0]));
    const BatchShape shape(in[0], in[1]);
    const auto room =
        scratch(stream(), batch_scratch(family, shape, now.pool.size()));
    allocate(out);
    const BatchProduct product{
        in[0].data<std::byte>(), in[1].data<std::byte>(),
        out[0].data<std::byte>(), true
    };
    launch([=, &family](const Execution& run) noexcept {
      const auto item = [&](ThreadPool& pool, long i, std::byte* place) {
        multiply_item(pool, family, shape, product, i, place);
      };
      each_item(run.pool, family, shape, room->data(), item);
    });
  }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    const bool dx = std::ranges::count(argnums, 0) > 0;
    const bool dw = std::ranges::count(argnums, 1) > 0;
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> types;
    if (dx) shapes.push_back(p[0].shape()), types.push_back(p[0].dtype());
    if (dw) shapes.push_back(p[1].shape()), types.push_back(mx::float32);
    const auto g = mx::array::make_arrays(
        std::move(shapes), types,
        std::make_shared<BatchedLinearGrad>(stream(), dx, dw),
        {dense(ct[0], stream()), p[0], p[1]}
    );
    return pick({g.front(), g.back()}, argnums);
  }
};

}  // namespace

mx::array batched_linear_cpu(
    const mx::array& x,
    const mx::array& w,
    mx::StreamOrDevice s
) {
  with_dtype("ops.batched_linear", x.dtype(), [](auto*) {});
  return mx::array(
      {x.shape(0), x.shape(1), w.shape(1)}, x.dtype(),
      std::make_shared<BatchedLinear>(mx::to_stream(s)),
      {dense(x, s), dense(w, s)}
  );
}

}  // namespace hearth::ops
