// Our kernels behind the rotary embedding.
#include "hearth/base/error.h"
#include "hearth/kernels/rope.h"
#include "hearth/ops/rope/faces_impl.h"
#include "hearth/ops/row_sums.h"

namespace hearth::ops {
namespace {

// x, positions [batch, length], table -> y. Its gradient is itself,
// rotating back.
class Rope : public CpuOp {
 public:
  Rope(mx::Stream s, RopePairs pairs, bool inverse)
      : CpuOp(s), pairs_(pairs), inverse_(inverse) {}
  HEARTH_OP_NAME(Rope)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_dtype("ops.Rope", in[0].dtype(), [&](auto* t) {
      run<std::remove_pointer_t<decltype(t)>>(in, out);
    });
  }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    if (argnums != std::vector<int>{0}) {
      throw UsageError("[ops.rope] only x has a gradient");
    }
    return {mx::array(
        p[0].shape(), p[0].dtype(),
        std::make_shared<Rope>(stream(), pairs_, !inverse_),
        {dense(ct[0], stream()), p[1], p[2]}
    )};
  }

 private:
  RopePairs pairs_;
  bool inverse_;

  template <class T>
  void run(const Arrays& in, Arrays& out) {
    take_or_allocate(in[0], out[0]);
    const auto& x = in[0];
    kernels::RopeArgs<T> a{};
    a.heads = x.shape(2), a.head_dim = x.shape(3);
    a.half = in[2].shape(1) / 2;
    a.interleaved = pairs_ == RopePairs::interleaved;
    a.inverse = inverse_;
    a.x = x.data<T>(), a.y = out[0].data<T>();
    a.table = in[2].data<float>(), a.table_rows = in[2].shape(0);
    a.positions = in[1].data<int>();
    a.past_caches = past_caches(out[0]);
    a.head_stride = a.head_dim, a.token_stride = a.heads * a.head_dim;
    launch([a, tokens = in[1].size()](const Execution& e) noexcept {
      const auto& f = e.kernels.rope->of(static_cast<T*>(nullptr));
      e.pool.parallel_for(
          tokens, row_grain(a.token_stride),
          [&](std::size_t begin, std::size_t end) {
            f.rotate(a, static_cast<long>(begin), static_cast<long>(end));
          }
      );
    });
  }
};

}  // namespace

mx::array rope_cpu(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
) {
  const auto p = mx::broadcast_to(positions, {x.shape(0), x.shape(1)}, s);
  return mx::array(
      x.shape(), x.dtype(),
      std::make_shared<Rope>(mx::to_stream(s), pairs, false),
      {dense(x, s), dense(p, s), dense(table, s)}
  );
}

}  // namespace hearth::ops
