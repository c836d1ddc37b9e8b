// Our kernels behind the embedding.
#include <cstring>

#include "hearth/base/error.h"
#include "hearth/kernels/embedding.h"
#include "hearth/ops/embedding/faces_impl.h"
#include "hearth/ops/row_sums.h"

namespace hearth::ops {
namespace {

// ids, dy -> gradient of the table, float32
class EmbeddingGrad : public CpuOp {
 public:
  EmbeddingGrad(mx::Stream s, Home home) : CpuOp(s), home_(std::move(home)) {}
  HEARTH_OP_NAME(EmbeddingGrad)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_dtype("ops.EmbeddingGrad", in[1].dtype(), [&](auto* t) {
      run<std::remove_pointer_t<decltype(t)>>(in, out[0]);
    });
  }

 private:
  Home home_;

  // Each worker clears its share of the rows' memory; then each owns the rows
  // whose number leaves its remainder.
  template <class Y>
  void run(const Arrays& in, mx::array& out) {
    const bool begun = home_ && home_->enter(out);
    if (!home_) allocate(out);
    launch([begun, rows = long{out.shape(0)}, dim = long{out.shape(1)},
            count = static_cast<long>(in[0].size()), ids = in[0].data<int>(),
            dy = in[1].data<Y>(),
            grad = out.data<float>()](const Execution& e) noexcept {
      if (!begun) {
        e.pool.parallel_for(
            static_cast<std::size_t>(rows * dim), 65536,
            [&](std::size_t begin, std::size_t end) {
              std::memset(grad + begin, 0, (end - begin) * sizeof(float));
            }
        );
      }
      const auto& f = e.kernels.embedding->grad_of(static_cast<Y*>(nullptr));
      const int parts = e.pool.size();
      e.pool.run([&](int part) {
        f.scatter_add(rows, dim, ids, dy, grad, count, part, parts);
      });
    });
  }
};

// ids, table -> y
class Embedding : public CpuOp {
 public:
  Embedding(mx::Stream s, Home home) : CpuOp(s), home_(std::move(home)) {}
  HEARTH_OP_NAME(Embedding)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_dtype("ops.Embedding", in[1].dtype(), [&](auto* w) {
      with_dtype("ops.Embedding", out[0].dtype(), [&](auto* y) {
        run(w, y, in, out[0]);
      });
    });
  }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    if (argnums != std::vector<int>{1}) {
      throw UsageError("[ops.embedding] only the table has a gradient");
    }
    return {mx::array(
        p[1].shape(), mx::float32,
        std::make_shared<EmbeddingGrad>(stream(), home_),
        {p[0], dense(ct[0], stream())}
    )};
  }

 private:
  Home home_;

  template <class W, class Y>
  void run(W* w, Y* y, const Arrays& in, mx::array& out) {
    allocate(out);
    launch([w, y, rows = long{in[1].shape(0)}, dim = long{in[1].shape(1)},
            count = in[0].size(), ids = in[0].data<int>(),
            table = in[1].data<W>(),
            to = out.data<Y>()](const Execution& e) noexcept {
      const auto& f = e.kernels.embedding->of(w, y);
      e.pool.parallel_for(
          count, row_grain(dim), [&](std::size_t begin, std::size_t end) {
            f.gather(
                rows, dim, ids, table, to, static_cast<long>(begin),
                static_cast<long>(end)
            );
          }
      );
    });
  }
};

}  // namespace

mx::array embedding_cpu(
    const mx::array& ids,
    const mx::array& table,
    mx::Dtype dtype,
    const Home& home,
    mx::StreamOrDevice s
) {
  auto shape = ids.shape();
  shape.push_back(table.shape(1));
  return mx::array(
      std::move(shape), dtype,
      std::make_shared<Embedding>(mx::to_stream(s), home),
      {dense(ids, s), dense(table, s)}
  );
}

}  // namespace hearth::ops
