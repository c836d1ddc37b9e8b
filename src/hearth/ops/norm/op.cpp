#include "hearth/ops/norm/op.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/kernels/norm.h"
#include "hearth/ops/row_sums.h"

namespace hearth::ops {
namespace {

enum class Kind { rms, layer };

// Which of the optional inputs are there, in the order they come in.
struct Config {
  Kind kind;
  float eps;
  bool has_r, has_w, has_b, h_used;
  bool operator==(const Config&) const = default;
};

template <class F>
void with_types(mx::Dtype x, mx::Dtype y, F&& f) {
  with_dtype("ops.norm", y, [&](auto* yt) {
    using Y = std::remove_pointer_t<decltype(yt)>;
    if (x == mx::float32) return f(static_cast<float*>(nullptr), yt);
    if constexpr (!std::is_same_v<Y, float>) f(yt, yt);
  });
}

template <class X, class Y>
const kernels::NormFunctions<X, Y>& functions(const Execution& run, Kind kind) {
  const auto& both = run.kernels.norm->of<X, Y>();
  return kind == Kind::rms ? both.rms : both.layer;
}

// h, dy[, w][, dh] -> dx[, dr][, dw][, db]
class NormGrad : public CpuOp {
 public:
  NormGrad(mx::Stream s, Config c) : CpuOp(s), c_(c) {}
  HEARTH_OP_NAME(NormGrad)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_types(in[0].dtype(), in[1].dtype(), [&](auto* x, auto* y) {
      run<std::remove_pointer_t<decltype(x)>,
          std::remove_pointer_t<decltype(y)>>(in, out);
    });
  }

  bool needs_dr(mx::Dtype x, mx::Dtype y) const { return c_.has_r && x != y; }

 private:
  Config c_;

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
  Norm(mx::Stream s, Config c) : CpuOp(s), c_(c) {}
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
  Config c_;

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

void check(
    const char* where,
    const mx::array& x,
    const std::optional<mx::array>& v,
    const char* what
) {
  if (x.ndim() == 0 || x.shape(-1) == 0) {
    throw UsageError(
        fmt::format(
            "[{}] x must have a last dimension of at least 1, got shape [{}]",
            where, fmt::join(x.shape(), ", ")
        )
    );
  }
  if (v && (v->ndim() != 1 || v->shape(0) != x.shape(-1))) {
    throw UsageError(
        fmt::format(
            "[{}] {} must have shape [{}], got [{}]", where, what, x.shape(-1),
            fmt::join(v->shape(), ", ")
        )
    );
  }
}

void check_types(const char* where, mx::Dtype x, mx::Dtype y) {
  with_dtype(where, x, [](auto*) {});
  with_dtype(where, y, [](auto*) {});
  if (x == mx::bfloat16 && y == mx::float32) {
    throw UsageError(
        fmt::format(
            "[{}] a bfloat16 stream must have bfloat16 branches, got float32",
            where
        )
    );
  }
}

Arrays build(
    Config c,
    const Arrays& stream_and_branch,
    const std::optional<mx::array>& w,
    const std::optional<mx::array>& b,
    mx::Dtype y,
    mx::Stream s
) {
  Arrays in;
  for (const auto& a : stream_and_branch) in.push_back(dense(a, s));
  const auto& x = in[0];
  std::vector<mx::Shape> shapes(c.has_r ? 2 : 1, x.shape());
  std::vector<mx::Dtype> types{y};
  if (c.has_r) types.insert(types.begin(), x.dtype());
  if (w) in.push_back(dense(mx::astype(*w, mx::float32, s), s));
  if (b) in.push_back(dense(mx::astype(*b, mx::float32, s), s));
  return mx::array::make_arrays(
      std::move(shapes), types, std::make_shared<Norm>(s, c), in
  );
}

mx::array scaled(
    const mx::array& centred,
    const std::optional<mx::array>& w,
    const std::optional<mx::array>& b,
    float eps,
    mx::Dtype out_dtype,
    mx::StreamOrDevice s
) {
  const auto variance = mx::mean(mx::square(centred, s), -1, true, s);
  const auto e = mx::array(eps, variance.dtype());
  auto y = mx::multiply(centred, mx::rsqrt(mx::add(variance, e, s), s), s);
  if (w) y = mx::multiply(y, wide(*w, s), s);
  if (b) y = mx::add(y, wide(*b, s), s);
  return mx::astype(y, out_dtype, s);
}

std::pair<mx::array, mx::array> add_norm(
    const char* where,
    Config c,
    const mx::array& x,
    const mx::array& r,
    const mx::array& w,
    const std::optional<mx::array>& b,
    mx::StreamOrDevice s
) {
  check(where, x, w, "w");
  check(where, x, b, "b");
  if (r.shape() != x.shape()) {
    throw UsageError(
        fmt::format(
            "[{}] r must have x's shape [{}], got [{}]", where,
            fmt::join(x.shape(), ", "), fmt::join(r.shape(), ", ")
        )
    );
  }
  if (!ours(s, r.dtype())) {
    const auto h = mx::add(x, mx::astype(r, x.dtype(), s), s);
    return {
        h, c.kind == Kind::rms
               ? rms_norm_reference(h, w, c.eps, r.dtype(), s)
               : layer_norm_reference(h, w, b, c.eps, r.dtype(), s)
    };
  }
  check_types(where, x.dtype(), r.dtype());
  auto out = build(c, {x, r}, w, b, r.dtype(), mx::to_stream(s));
  return {out[0], out[1]};
}

}  // namespace

mx::array rms_norm_reference(
    const mx::array& x,
    const std::optional<mx::array>& w,
    float eps,
    mx::Dtype out_dtype,
    mx::StreamOrDevice s
) {
  return scaled(wide(x, s), w, {}, eps, out_dtype, s);
}

mx::array layer_norm_reference(
    const mx::array& x,
    const std::optional<mx::array>& w,
    const std::optional<mx::array>& b,
    float eps,
    mx::Dtype out_dtype,
    mx::StreamOrDevice s
) {
  const auto v = wide(x, s);
  const auto centred = mx::subtract(v, mx::mean(v, -1, true, s), s);
  return scaled(centred, w, b, eps, out_dtype, s);
}

mx::array rms_norm(
    const mx::array& x,
    const std::optional<mx::array>& w,
    float eps,
    std::optional<mx::Dtype> out_dtype,
    mx::StreamOrDevice s
) {
  check("ops.rms_norm", x, w, "w");
  const auto y = out_dtype.value_or(x.dtype());
  if (!ours(s, y)) return rms_norm_reference(x, w, eps, y, s);
  check_types("ops.rms_norm", x.dtype(), y);
  const Config c{Kind::rms, eps, false, w.has_value(), false, true};
  return build(c, {x}, w, {}, y, mx::to_stream(s))[0];
}

mx::array layer_norm(
    const mx::array& x,
    const std::optional<mx::array>& w,
    const std::optional<mx::array>& b,
    float eps,
    std::optional<mx::Dtype> out_dtype,
    mx::StreamOrDevice s
) {
  check("ops.layer_norm", x, w, "w");
  check("ops.layer_norm", x, b, "b");
  const auto y = out_dtype.value_or(x.dtype());
  if (!ours(s, y)) return layer_norm_reference(x, w, b, eps, y, s);
  check_types("ops.layer_norm", x.dtype(), y);
  const Config c{Kind::layer, eps, false, w.has_value(), b.has_value(), true};
  return build(c, {x}, w, b, y, mx::to_stream(s))[0];
}

std::pair<mx::array, mx::array> add_rms_norm(
    const mx::array& x,
    const mx::array& r,
    const mx::array& w,
    float eps,
    bool h_used,
    mx::StreamOrDevice s
) {
  const Config c{Kind::rms, eps, true, true, false, h_used};
  return add_norm("ops.add_rms_norm", c, x, r, w, {}, s);
}

std::pair<mx::array, mx::array> add_layer_norm(
    const mx::array& x,
    const mx::array& r,
    const mx::array& w,
    const std::optional<mx::array>& b,
    float eps,
    bool h_used,
    mx::StreamOrDevice s
) {
  const Config c{Kind::layer, eps, true, true, b.has_value(), h_used};
  return add_norm("ops.add_layer_norm", c, x, r, w, b, s);
}

}  // namespace hearth::ops
