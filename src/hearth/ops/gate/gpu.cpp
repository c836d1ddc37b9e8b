// Activations and gates as a GPU runs them: one function forward and one for
// the gradient, each a single kernel once it is compiled. They read activations
// in their own type, compute in float32 and keep nothing but their inputs.
#include "hearth/ops/compiled.h"
#include "hearth/ops/gate/curve_impl.h"
#include "hearth/ops/gate/gpu_product.h"

namespace hearth::ops {
namespace {

mx::array like(const mx::array& x, const mx::array& of, mx::StreamOrDevice s) {
  return mx::astype(x, of.dtype(), s);
}

// x -> act(x)
Arrays activation(
    const Arrays& in,
    mx::StreamOrDevice s,
    Activation act,
    float beta
) {
  const WideMath c(s);
  return {like(c.curve(c.wide(in[0]), act, beta).value, in[0], s)};
}
// x, dy -> dx
Arrays activation_gradient(
    const Arrays& in,
    mx::StreamOrDevice s,
    Activation act,
    float beta
) {
  const WideMath c(s);
  const auto slope = c.curve(c.wide(in[0]), act, beta).slope;
  return {like(c.times(c.wide(in[1]), slope), in[0], s)};
}

// The halves of the last dimension, as views.
std::pair<mx::array, mx::array> halves_of(
    const mx::array& x,
    mx::StreamOrDevice s
) {
  mx::Shape start(x.ndim(), 0), stop = x.shape();
  stop.back() /= 2;
  const auto first = mx::slice(x, start, stop, s);
  start.back() = stop.back();
  return {first, mx::slice(x, start, x.shape(), s)};
}

// gate, value -> act(gate) value
Arrays product(const Arrays& in, mx::StreamOrDevice s, Activation act) {
  const WideMath c(s);
  const auto g = c.curve(c.wide(in[0]), act, 1).value;
  return {like(c.times(g, c.wide(in[1])), in[0], s)};
}
// gate_up -> act(gate) up
Arrays joint_product(const Arrays& in, mx::StreamOrDevice s, Activation act) {
  const auto [gate, up] = halves_of(in[0], s);
  return product({gate, up}, s, act);
}

// gate, value, dy -> dgate, dvalue
Arrays product_gradient(
    const Arrays& in,
    mx::StreamOrDevice s,
    Activation act
) {
  const WideMath c(s);
  const auto g = c.curve(c.wide(in[0]), act, 1);
  const auto dy = c.wide(in[2]);
  return {
      like(c.times(dy, c.times(c.wide(in[1]), g.slope)), in[0], s),
      like(c.times(dy, g.value), in[1], s)
  };
}
// gate_up, dy -> dgate_up. Both halves are worked out for every element and one
// is taken, so that one kernel writes the whole: two results would have to be
// joined by a copy, which moves more than the arithmetic costs.
Arrays joint_product_gradient(
    const Arrays& in,
    mx::StreamOrDevice s,
    Activation act
) {
  auto split = in[0].shape();
  split.back() /= 2;
  split.insert(split.end() - 1, 2);
  const auto over_both = [&](const mx::array& x) {
    return mx::broadcast_to(mx::expand_dims(x, -2, s), split, s);
  };
  const auto [gate, up] = halves_of(in[0], s);
  const auto d = product_gradient(
      {over_both(gate), over_both(up), over_both(in[1])}, s, act
  );
  const auto is_gate = mx::array({true, false}, {2, 1});
  return {mx::reshape(mx::where(is_gate, d[0], d[1], s), in[0].shape(), s)};
}

struct Value {
  mx::array value, slope;
};
Value value_of(const mx::array& x, bool squashed, const WideMath& c) {
  const auto v = c.wide(x);
  if (!squashed) return {v, mx::array(1.0f)};
  const auto t = c.curve(v, Activation::tanh, 1);
  return {t.value, t.slope};
}

// gate, value, alpha -> v (alpha act(gate) + 1 - alpha)
Arrays partial(
    const Arrays& in,
    mx::StreamOrDevice s,
    Activation act,
    bool tanh_value,
    float beta
) {
  const WideMath c(s);
  const auto g = c.curve(c.wide(in[0]), act, beta);
  const auto v = value_of(in[1], tanh_value, c);
  const auto mixed = c.plus(c.times(in[2], g.value), c.less(1, in[2]));
  return {like(c.times(v.value, mixed), in[0], s)};
}
// gate, value, alpha, dy -> dgate, dvalue, each element's share of dalpha
Arrays partial_gradient(
    const Arrays& in,
    mx::StreamOrDevice s,
    Activation act,
    bool tanh_value,
    float beta
) {
  const WideMath c(s);
  const auto& alpha = in[2];
  const auto g = c.curve(c.wide(in[0]), act, beta);
  const auto v = value_of(in[1], tanh_value, c);
  const auto dy = c.wide(in[3]);
  const auto mixed = c.plus(c.times(alpha, g.value), c.less(1, alpha));
  const auto dv = c.times(dy, v.value);
  return {
      like(c.times(dv, c.times(alpha, g.slope)), in[0], s),
      like(c.times(c.times(dy, v.slope), mixed), in[1], s),
      c.times(dv, c.plus(-1, g.value))
  };
}

// In two stages, as one float32 sum over millions would lose what comes late.
mx::array sum_like(
    const mx::array& shares,
    const mx::array& like_this,
    mx::StreamOrDevice s
) {
  const auto rows = mx::sum(shares, -1, false, s);
  return mx::reshape(mx::sum(rows, s), like_this.shape(), s);
}

}  // namespace

mx::array gate_gpu(
    const GateConfig& c,
    const Arrays& in,
    mx::StreamOrDevice s
) {
  using Forward = std::function<Arrays(const Arrays&)>;
  using Backward =
      std::function<Arrays(const Arrays&, const Arrays&, const Arrays&)>;
  const auto run = [&](const Forward& f, const Backward& b) {
    return mx::custom_vjp(f, b)(in)[0];
  };
  const auto [act, tanh_value, beta] = c.form;
  const auto with = [](const Arrays& p, const Arrays& ct) {
    Arrays all = p;
    all.push_back(ct[0]);
    return all;
  };
  if (c.has_alpha) {
    return run(
        [=](const Arrays& p) {
          return compiled(partial, p, s, act, tanh_value, beta);
        },
        [=](const Arrays& p, const Arrays& ct, const Arrays&) {
          auto d =
              compiled(partial_gradient, with(p, ct), s, act, tanh_value, beta);
          d[2] = sum_like(d[2], p[2], s);
          return d;
        }
    );
  }
  if (c.layout == GateLayout::plain) {
    return run(
        [=](const Arrays& p) { return compiled(activation, p, s, act, beta); },
        [=](const Arrays& p, const Arrays& ct, const Arrays&) {
          return compiled(activation_gradient, with(p, ct), s, act, beta);
        }
    );
  }
  if (product_fits(act, in, s)) {
    return run(
        [=](const Arrays& p) { return Arrays{product_gpu(act, p, s)}; },
        [=](const Arrays& p, const Arrays& ct, const Arrays&) {
          return product_gradient_gpu(act, with(p, ct), s);
        }
    );
  }
  const bool joint = c.layout == GateLayout::halves;
  return run(
      [=](const Arrays& p) {
        return compiled(joint ? joint_product : product, p, s, act);
      },
      [=](const Arrays& p, const Arrays& ct, const Arrays&) {
        return compiled(
            joint ? joint_product_gradient : product_gradient, with(p, ct), s,
            act
        );
      }
  );
}

}  // namespace hearth::ops
