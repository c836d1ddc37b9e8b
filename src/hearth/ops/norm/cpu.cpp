// Our kernels behind norms.
#include <cstring>

#include "hearth/kernels/norm.h"
#include "hearth/ops/norm/faces_impl.h"
#include "hearth/ops/row_sums.h"

namespace hearth::ops {
namespace {

template <class F>
void with_types(mx::Dtype x, mx::Dtype y, F&& f) {
  with_dtype("ops.norm", y, [&](auto* yt) {
    using Y = std::remove_pointer_t<decltype(yt)>;
    if (x == mx::float32) return f(static_cast<float*>(nullptr), yt);
    if constexpr (!std::is_same_v<Y, float>) f(yt, yt);
  });
}

template <class X, class Y>
const kernels::NormFunctions<X, Y>& functions(
    const Execution& run,
    NormKind kind
) {
  const auto& both = run.kernels.norm->of<X, Y>();
  return kind == NormKind::rms ? both.rms : both.layer;
}

// h, dy[, w][, dh] -> dx[, dr][, dw][, db]
class NormGrad : public CpuOp {
 public:
  NormGrad(mx::Stream s, NormConfig c) : CpuOp(s), c_(c) {}
  HEARTH_OP_NAME(NormGrad)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_types(in[0].dtype(), in[1].dtype(), [&](auto* x, auto* y) {
      run<std::remove_pointer_t<decltype(x)>,
          std::remove_pointer_t<decltype(y)>>(in, out);
    });
  }

  bool needs_dr(mx::Dtype x, mx::Dtype y) const { return c_.has_r && x != y; }

 private:
  NormConfig c_;

  template <class X, class Y>
  void run(const Arrays& in, Arrays& out) {
    const long dim = in[0].shape(-1), rows = rows_of(in[0]);
    const int sums = (c_.has_w ? 1 : 0) + (c_.has_b ? 1 : 0);
    RowSums partial(stream(), rows, dim * sums);
    allocate(out);
    std::size_t next_in = 2, next_out = 1;
    kernels::NormGradArgs<X, Y> a{};
    a.dim = dim, a.eps = c_.eps;
    a.h = in[0].data<X>(), a.dy = in[1].data<Y>();
    if (c_.has_w) a.w = in[next_in++].data<float>();
    if (c_.h_used && c_.has_r) a.dh = in[next_in++].data<X>();
    a.dx = out[0].data<X>();
    a.past_caches = past_caches(out[0]);
    if constexpr (!std::is_same_v<X, Y>) {
      if (c_.has_r) a.dr = out[next_out++].data<Y>();
    }
    float* dw = c_.has_w ? out[next_out++].data<float>() : nullptr;
    float* db = c_.has_b ? out[next_out++].data<float>() : nullptr;
    launch([=, kind = c_.kind](const Execution& r) noexcept {
      partial.for_blocks(r.pool, [&](long begin, long end, float* sum) {
        functions<X, Y>(r, kind).backward(
            a, begin, end, dw ? sum : nullptr,
            db ? sum + (dw ? dim : 0) : nullptr
        );
      });
      if (dw != nullptr) partial.total(0, dim, dw);
      if (db != nullptr) partial.total(dw != nullptr ? dim : 0, dim, db);
    });
  }
};

// x[, r][, w][, b] -> [h, ]y
class Norm : public CpuOp {
 public:
  Norm(mx::Stream s, NormConfig c) : CpuOp(s), c_(c) {}
  HEARTH_OP_NAME(Norm)
  bool is_equivalent(const mx::Primitive& other) const override {
    return c_ == static_cast<const Norm&>(other).c_;
  }

  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_types(in[0].dtype(), out.back().dtype(), [&](auto* x, auto* y) {
      run<std::remove_pointer_t<decltype(x)>,
          std::remove_pointer_t<decltype(y)>>(in, out);
    });
  }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays& out
  ) override {
    const auto& h = c_.has_r ? out[0] : p[0];
    const std::size_t w_at = c_.has_r ? 2 : 1;
    Arrays in{h, dense(ct.back(), stream())};
    if (c_.has_w) in.push_back(p[w_at]);
    if (c_.has_r && c_.h_used) in.push_back(dense(ct[0], stream()));
    std::vector<mx::Shape> shapes{h.shape()};
    std::vector<mx::Dtype> types{h.dtype()};
    const auto want = [&](const mx::array& like) {
      shapes.push_back(like.shape());
      types.push_back(like.dtype());
    };
    const bool needs_dr = c_.has_r && h.dtype() != out.back().dtype();
    if (needs_dr) want(out.back());
    for (std::size_t i = w_at; i < p.size(); ++i) want(p[i]);
    auto g = mx::array::make_arrays(
        std::move(shapes), types, std::make_shared<NormGrad>(stream(), c_), in
    );
    // Without a type of its own, r's gradient is x's.
    if (c_.has_r && !needs_dr) g.insert(g.begin() + 1, g[0]);
    return pick(g, argnums);
  }

 private:
  NormConfig c_;

  template <class X, class Y>
  void run(const Arrays& in, Arrays& out) {
    allocate(out);
    kernels::NormArgs<X, Y> a{};
    a.dim = in[0].shape(-1), a.eps = c_.eps;
    std::size_t next = 1;
    a.x = in[0].data<X>();
    if (c_.has_r) a.r = in[next++].data<Y>(), a.h = out[0].data<X>();
    if (c_.has_w) a.w = in[next++].data<float>();
    if (c_.has_b) a.b = in[next].data<float>();
    a.y = out.back().data<Y>();
    a.past_caches = past_caches(out.back());
    launch([a, rows = rows_of(in[0]),
            kind = c_.kind](const Execution& r) noexcept {
      const auto& f = functions<X, Y>(r, kind);
      r.pool.parallel_for(
          static_cast<std::size_t>(rows), row_grain(a.dim),
          [&](std::size_t begin, std::size_t end) {
            f.forward(a, static_cast<long>(begin), static_cast<long>(end));
          }
      );
    });
  }
};

}  // namespace

Arrays norm_cpu(
    const NormConfig& c,
    const NormInputs& from,
    mx::Dtype y,
    mx::StreamOrDevice s
) {
  Arrays in;
  for (const auto& a : from.stream) in.push_back(dense(a, s));
  const auto& x = in[0];
  std::vector<mx::Shape> shapes(c.has_r ? 2 : 1, x.shape());
  std::vector<mx::Dtype> types{y};
  if (c.has_r) types.insert(types.begin(), x.dtype());
  for (const auto& learned : {from.w, from.b}) {
    if (learned) in.push_back(dense(mx::astype(*learned, mx::float32, s), s));
  }
  return mx::array::make_arrays(
      std::move(shapes), types, std::make_shared<Norm>(mx::to_stream(s), c), in
  );
}

}  // namespace hearth::ops
