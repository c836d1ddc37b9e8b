#include "hearth/ops/rope/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/kernels/rope.h"
#include "hearth/ops/row_sums.h"

namespace hearth::ops {
namespace {

// x, positions [batch, length], table -> y. Its gradient is itself, turning
// back.
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
            f.turn(a, static_cast<long>(begin), static_cast<long>(end));
          }
      );
    });
  }
};

void check(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table
) {
  constexpr const char* kWhere = "[ops.rope]";
  if (x.ndim() != 4) {
    throw UsageError(
        fmt::format(
            "{} x must be [batch, length, heads, head_dim], got [{}]", kWhere,
            fmt::join(x.shape(), ", ")
        )
    );
  }
  if (table.ndim() != 2 || table.shape(1) % 2 != 0 ||
      table.shape(1) > x.shape(3)) {
    throw UsageError(
        fmt::format(
            "{} the table must be [positions, dims] with even dims of at most "
            "{}, "
            "got [{}]",
            kWhere, x.shape(3), fmt::join(table.shape(), ", ")
        )
    );
  }
  const mx::Shape whole{x.shape(0), x.shape(1)}, shared{x.shape(1)};
  if (positions.shape() != whole && positions.shape() != shared) {
    throw UsageError(
        fmt::format(
            "{} positions must be [{}] or [{}], got [{}]", kWhere,
            fmt::join(whole, ", "), x.shape(1),
            fmt::join(positions.shape(), ", ")
        )
    );
  }
}

}  // namespace

mx::array rope(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
) {
  check(x, positions, table);
  if (!ours(s, x.dtype())) {
    return rope_reference(x, positions, table, pairs, s);
  }
  with_dtype("ops.rope", x.dtype(), [](auto*) {});
  const auto stream = mx::to_stream(s);
  const auto p = mx::broadcast_to(
      mx::astype(positions, mx::int32, s), {x.shape(0), x.shape(1)}, s
  );
  return mx::array(
      x.shape(), x.dtype(), std::make_shared<Rope>(stream, pairs, false),
      {dense(x, s), dense(p, s), dense(mx::astype(table, mx::float32, s), s)}
  );
}

mx::array rope_reference(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
) {
  const auto wide_type = x.dtype() == mx::float64 ? mx::float64 : mx::float32;
  const int half = table.shape(1) / 2, last = 3;
  // [batch or 1, length, 1, dims]
  auto rows = mx::take(mx::astype(table, wide_type, s), positions, 0, s);
  rows = mx::expand_dims(rows, -2, s);
  const auto turns = mx::split(rows, 2, -1, s);
  const auto wide = mx::astype(x, wide_type, s);
  const auto parts = mx::split(wide, mx::Shape{2 * half}, last, s);
  const bool interleaved = pairs == RopePairs::interleaved;
  mx::Shape paired = x.shape();
  paired.back() = interleaved ? half : 2;
  paired.push_back(interleaved ? 2 : half);
  const int pair_axis = interleaved ? 4 : 3;
  const auto ab = mx::split(mx::reshape(parts[0], paired, s), 2, pair_axis, s);
  const auto a = mx::squeeze(ab[0], pair_axis, s);
  const auto b = mx::squeeze(ab[1], pair_axis, s);
  const auto &c = turns[0], &d = turns[1];
  const auto first =
      mx::subtract(mx::multiply(a, c, s), mx::multiply(b, d, s), s);
  const auto second = mx::add(mx::multiply(a, d, s), mx::multiply(b, c, s), s);
  auto y = mx::stack({first, second}, pair_axis, s);
  mx::Shape flat = x.shape();
  flat.back() = 2 * half;
  y = mx::reshape(y, flat, s);
  if (parts.size() > 1 && parts[1].size() > 0) {
    y = mx::concatenate({y, parts[1]}, last, s);
  }
  return mx::astype(y, x.dtype(), s);
}

}  // namespace hearth::ops
