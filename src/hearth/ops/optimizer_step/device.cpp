#include "hearth/ops/optimizer_step/device.h"

#include <algorithm>
#include <cmath>

#include "hearth/kernels/optim.h"

namespace hearth::ops {
namespace {

// Arithmetic in float32 on one stream.
struct On {
  mx::StreamOrDevice s;
  mx::array times(const mx::array& a, const mx::array& b) const {
    return mx::multiply(a, b, s);
  }
  mx::array times(double a, const mx::array& b) const {
    return times(mx::array(static_cast<float>(a)), b);
  }
  mx::array plus(const mx::array& a, const mx::array& b) const {
    return mx::add(a, b, s);
  }
  // beta a + (1 - beta) b
  mx::array mix(float beta, const mx::array& a, const mx::array& b) const {
    return plus(times(double{beta}, a), times(1 - double{beta}, b));
  }
  mx::array scaled(const mx::array& gradient, const mx::array& by) const {
    return times(mx::astype(gradient, mx::float32, s), by);
  }
  // w - lr (update + decay w)
  mx::array moved(
      const mx::array& w,
      const mx::array& update,
      const mx::array& lr,
      float decay
  ) const {
    const auto pulled = plus(update, times(double{decay}, w));
    return mx::subtract(w, times(lr, pulled), s);
  }
};

// What AdamW makes of both moments: {weight, m, v}. It is written so that MLX
// makes one kernel of it: at most eleven operations deep, whose only results
// that are read twice are its outputs. So what can be is worked out of scalars
// beforehand, and the gradient's scale goes into the factors of both moments. A
// step that is not fit comes with a rate and a scale of 0, so that nothing
// changes, and its gradient is taken for zeros: infinity times zero would be no
// number.
Arrays adamw(
    const On& on,
    const AdamW& h,
    const StepScalars& scalars,
    const Arrays& before,
    const mx::array& gradient
) {
  const auto keep = [&](float beta) {
    const mx::array b(beta);
    return scalars.fit ? mx::where(*scalars.fit, b, mx::array(1.0f), on.s) : b;
  };
  const auto& scale = scalars.gradient_scale;
  const auto fresh1 = on.times(1 - double{h.beta1}, scale);
  const auto fresh2 = on.times(1 - double{h.beta2}, mx::square(scale, on.s));
  const auto& rate = scalars.learning_rate;
  const auto root2 = mx::sqrt(scalars.correction2, on.s);

  auto g = gradient;
  if (scalars.fit) {
    g = mx::where(*scalars.fit, g, mx::array(0, g.dtype()), on.s);
  }
  g = mx::astype(g, mx::float32, on.s);
  const auto m =
      on.plus(on.times(keep(h.beta1), before[1]), on.times(fresh1, g));
  const auto v = on.plus(
      on.times(keep(h.beta2), before[2]), on.times(fresh2, mx::square(g, on.s))
  );
  const auto update = mx::divide(
      on.times(m, on.times(scalars.correction1, rate)),
      on.plus(on.times(mx::sqrt(v, on.s), root2), mx::array(h.eps)), on.s
  );
  const auto shrink = [&](const mx::array& w) {
    if (h.decay == 0) return w;
    const auto by =
        mx::subtract(mx::array(1.0f), on.times(double{h.decay}, rate), on.s);
    return on.times(by, w);
  };
  return {mx::subtract(shrink(before[0]), update, on.s), m, v};
}

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

mx::array number(double x) {
  return mx::array(static_cast<float>(x));
}

}  // namespace

Arrays StepScalars::arrays() const {
  return {learning_rate, gradient_scale, correction1, correction2, fresh};
}

StepScalars StepScalars::of(std::span<const mx::array> a) {
  return {a[0], a[1], a[2], a[3], a[4]};
}

StepScalars step_scalars(const StepNumbers& n) {
  const auto step = static_cast<double>(n.step);
  return {
      number(n.learning_rate), number(n.gradient_scale),
      number(1 / (1 - std::pow(n.beta1, step))),
      number(1 / (1 - std::pow(n.beta2, step))),
      number(std::pow(step, n.decay_rate))
  };
}

Arrays kept(
    const StepScalars& scalars,
    const Arrays& before,
    Arrays after,
    mx::StreamOrDevice s
) {
  if (!scalars.fit) return after;
  for (std::size_t i = 0; i < after.size(); ++i) {
    after[i] = mx::where(*scalars.fit, after[i], before[i], s);
  }
  return after;
}

Arrays adamw_device(
    const AdamW& hyper,
    const StepScalars& scalars,
    const Arrays& before,
    const mx::array& gradient,
    mx::StreamOrDevice s
) {
  return adamw(On{s}, hyper, scalars, before, gradient);
}

Arrays adamw8_device(
    const AdamW& hyper,
    const StepScalars& scalars,
    const Arrays& before,
    const mx::array& gradient,
    mx::StreamOrDevice s
) {
  const On on{s};
  const std::size_t n = before[0].size();
  const auto tops = [&](const mx::array& scales) {
    return mx::expand_dims(scales, -1, s);
  };
  // Codes of what was decoded need not be the codes that it was decoded from.
  StepScalars always = scalars;
  always.fit.reset();
  const auto after = adamw(
      on, hyper, always,
      {in_blocks(on, before[0]),
       decoded_m(on, in_blocks(on, before[1]), tops(before[3])),
       decoded_v(on, in_blocks(on, before[2]), tops(before[4]))},
      in_blocks(on, gradient)
  );
  const auto weight =
      mx::reshape(out_of_blocks(on, after[0], n), before[0].shape(), s);
  const Codes m = encoded_m(on, after[1]), v = encoded_v(on, after[2]);
  return kept(
      scalars, before,
      {weight, out_of_blocks(on, m.code, n), out_of_blocks(on, v.code, n),
       mx::squeeze(m.top, -1, s), mx::squeeze(v.top, -1, s)},
      s
  );
}

Arrays lion_device(
    const Lion& h,
    const StepScalars& scalars,
    const Arrays& before,
    const mx::array& gradient,
    mx::StreamOrDevice s
) {
  const On on{s};
  const auto g = on.scaled(gradient, scalars.gradient_scale);
  const auto c = on.mix(h.beta1, before[1], g);
  // MLX's sign of NaN is 0; a broken step must show.
  const auto sign = mx::where(mx::isnan(c, s), c, mx::sign(c, s), s);
  return kept(
      scalars, before,
      {on.moved(before[0], sign, scalars.learning_rate, h.decay),
       on.mix(h.beta2, before[1], g)},
      s
  );
}

Arrays momentum_device(
    float mu,
    bool nesterov,
    const mx::array& m,
    const mx::array& gradient,
    const mx::array& gradient_scale,
    mx::StreamOrDevice s
) {
  const On on{s};
  const auto g = on.scaled(gradient, gradient_scale);
  const auto after = on.plus(on.times(double{mu}, m), g);
  return {nesterov ? on.plus(g, on.times(double{mu}, after)) : after, after};
}

Arrays muon_device(
    const Muon& h,
    const StepScalars& scalars,
    const Arrays& before,
    const mx::array& gradient,
    mx::StreamOrDevice s
) {
  const On on{s};
  const auto moments = momentum_device(
      h.momentum, h.nesterov, before[1], gradient, scalars.gradient_scale, s
  );
  const auto product = [&](const mx::array& a, const mx::array& b) {
    const auto right = mx::transpose(mx::astype(b, h.compute, s), s);
    const auto y = mx::matmul(mx::astype(a, h.compute, s), right, s);
    return mx::astype(y, mx::float32, s);
  };
  const auto direction = orthogonalize(moments[0], h.steps, product, s);
  // An orthogonal n x k matrix has elements of the size 1 / sqrt(max(n, k)).
  const auto& shape = before[0].shape();
  const double size = double{h.rms} * std::sqrt(std::max(shape[0], shape[1]));
  const auto update = on.times(size, direction);
  return kept(
      scalars, before,
      {on.moved(before[0], update, scalars.learning_rate, h.decay), moments[1]},
      s
  );
}

}  // namespace hearth::ops
