// AdamW with 8-bit states as a graph: the states are decoded, stepped and
// encoded again, code for code as the kernels do it.
#include "hearth/kernels/optim.h"
#include "hearth/ops/optimizer_step/gpu.h"
#include "hearth/ops/optimizer_step/gpu_math_impl.h"

namespace hearth::ops {
namespace {

// A flat array in the 8-bit states' blocks, the last one filled up with zeros.
mx::array in_blocks(const On& on, const mx::array& a) {
  constexpr int kBlock = static_cast<int>(kernels::kStateBlock);
  auto flat = mx::reshape(a, {-1}, on.s);
  const int short_of = (kBlock - flat.shape(0) % kBlock) % kBlock;
  if (short_of != 0) {
    const auto zero = mx::array(0, a.dtype());
    flat =
        mx::pad(flat, std::pair<int, int>{0, short_of}, zero, "constant", on.s);
  }
  return mx::reshape(flat, {-1, kBlock}, on.s);
}
mx::array out_of_blocks(const On& on, const mx::array& a, std::size_t n) {
  return mx::slice(
      mx::reshape(a, {-1}, on.s), {0}, {static_cast<int>(n)}, on.s
  );
}

constexpr float kLargestM = 127, kLargestV = 255;

// See kernels/optim.h for what the codes stand for.
mx::array decoded_m(const On& on, const mx::array& code, const mx::array& top) {
  const auto f = mx::astype(code, mx::float32, on.s);
  const auto scale = on.times(1 / (double{kLargestM} * double{kLargestM}), top);
  return on.times(on.times(scale, f), mx::abs(f, on.s));
}
mx::array decoded_v(const On& on, const mx::array& code, const mx::array& top) {
  const auto f =
      on.times(1 / double{kLargestV}, mx::astype(code, mx::float32, on.s));
  const auto square = mx::square(f, on.s);
  return on.times(on.times(top, square), square);
}

// The largest size in each block; NaN stays out, as it does in the codes.
mx::array without_nan(const On& on, const mx::array& a) {
  return mx::where(mx::isnan(a, on.s), mx::array(0.0f), a, on.s);
}
// largest / top, or 0 for a block of zeros.
mx::array over_top(const On& on, float largest, const mx::array& top) {
  const auto zero = mx::array(0.0f);
  return mx::where(
      mx::greater(top, zero, on.s), mx::divide(mx::array(largest), top, on.s),
      zero, on.s
  );
}
mx::array rounded(const On& on, const mx::array& a) {
  return mx::floor(on.plus(a, mx::array(0.5f)), on.s);
}

// The nearest codes, by the kernels' own arithmetic.
struct Codes {
  mx::array code, top;
};
Codes encoded_m(const On& on, const mx::array& given) {
  const auto m = without_nan(on, given);
  const auto size = mx::abs(m, on.s);
  const auto top = mx::max(size, -1, true, on.s);
  const auto down = over_top(on, kLargestM * kLargestM, top);
  const auto root = mx::sqrt(on.times(size, down), on.s);
  const auto code = on.times(mx::sign(m, on.s), rounded(on, root));
  return {mx::astype(code, mx::int8, on.s), top};
}
Codes encoded_v(const On& on, const mx::array& given) {
  const auto v = without_nan(on, given);
  const auto top = mx::max(v, -1, true, on.s);
  const auto part = on.times(v, over_top(on, 1, top));
  const auto root = mx::sqrt(mx::sqrt(part, on.s), on.s);
  const auto nearest = rounded(on, on.times(double{kLargestV}, root));
  // Never 0 for a v above 0: it is divided by.
  const auto least =
      mx::astype(mx::greater(v, mx::array(0.0f), on.s), mx::float32, on.s);
  const auto code = mx::maximum(nearest, least, on.s);
  return {mx::astype(code, mx::uint8, on.s), top};
}

}  // namespace

Arrays adamw8_graph(const AdamW& hyper, const GraphStep& step) {
  const auto& [before, gradient, scalars, s] = step;
  const On on{s};
  const std::size_t n = before[0].size();
  const auto tops = [&on](const mx::array& scales) {
    return mx::expand_dims(scales, -1, on.s);
  };
  // Codes of what was decoded need not be the codes that it was decoded from.
  StepScalars always = scalars;
  always.fit.reset();
  const auto after = adamw_graph(
      hyper, {.before =
                  {in_blocks(on, before[0]),
                   decoded_m(on, in_blocks(on, before[1]), tops(before[3])),
                   decoded_v(on, in_blocks(on, before[2]), tops(before[4]))},
              .gradient = in_blocks(on, gradient),
              .scalars = always,
              .s = s}
  );
  const auto weight =
      mx::reshape(out_of_blocks(on, after[0], n), before[0].shape(), s);
  const Codes m = encoded_m(on, after[1]), v = encoded_v(on, after[2]);
  return kept(
      step, {weight, out_of_blocks(on, m.code, n), out_of_blocks(on, v.code, n),
             mx::squeeze(m.top, -1, s), mx::squeeze(v.top, -1, s)}
  );
}

}  // namespace hearth::ops
