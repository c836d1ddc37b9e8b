// Rounding to a format and back as a GPU runs it: one function, which is
// compiled there, with the kernels' own arithmetic (kernels/quant).
#include <cmath>

#include <mlx/transforms.h>

#include "hearth/ops/compiled.h"
#include "hearth/ops/fake_quant/faces_impl.h"

namespace hearth::ops {
namespace {

using kernels::QuantFormat;
using kernels::QuantKind;
using kernels::ScaleType;

mx::Dtype stored_as(ScaleType type) {
  return type == ScaleType::kF16    ? mx::float16
         : type == ScaleType::kBf16 ? mx::bfloat16
                                    : mx::float32;
}

// Arithmetic on groups [..., group] in float32.
struct GroupMath {
  mx::StreamOrDevice s;
  mx::Dtype stored;

  mx::array number(float x) const { return mx::array(x); }
  mx::array least(const mx::array& w) const { return mx::min(w, -1, true, s); }
  mx::array most(const mx::array& w) const { return mx::max(w, -1, true, s); }
  mx::array over(const mx::array& a, const mx::array& b) const {
    return mx::divide(a, b, s);
  }
  mx::array times(const mx::array& a, const mx::array& b) const {
    return mx::multiply(a, b, s);
  }
  // As a file holds it.
  mx::array kept(const mx::array& a) const {
    return mx::astype(mx::astype(a, stored, s), mx::float32, s);
  }
  mx::array nearest(const mx::array& a, float low, float high) const {
    return mx::round(mx::clip(a, number(low), number(high), s), s);
  }
  // NaN for a group that holds a NaN or an infinity.
  mx::array or_nan(const mx::array& a, const mx::array& w) const {
    const auto sound = mx::all(mx::isfinite(w, s), -1, true, s);
    return mx::where(sound, a, number(NAN), s);
  }
};

mx::array affine_rounded(const GroupMath& c, const mx::array& w, int bits) {
  const auto s = c.s;
  const auto bins = static_cast<float>((1 << bits) - 1);
  const auto low = c.least(w), high = c.most(w);
  const auto low_edge = mx::greater(mx::abs(low, s), mx::abs(high, s), s);
  const auto span = mx::maximum(
      c.over(mx::subtract(high, low, s), c.number(bins)), c.number(1e-7f), s
  );
  const auto step = mx::where(low_edge, span, mx::negative(span, s), s);
  const auto edge = mx::where(low_edge, low, high, s);
  // The scale is nudged so that the edge and zero are both codes.
  const auto steps = mx::round(c.over(edge, step), s);
  const auto some = mx::not_equal(steps, c.number(0), s);
  const auto scale = mx::where(some, c.over(edge, steps), step, s);
  const auto bias = mx::where(some, edge, c.number(0), s);
  const auto u = c.nearest(c.over(mx::subtract(w, bias, s), scale), 0, bins);
  const auto y =
      c.kept(mx::add(c.kept(c.times(c.kept(scale), u)), c.kept(bias), s));
  return c.or_nan(y, w);
}

mx::array symmetric_rounded(const GroupMath& c, const mx::array& w, int bits) {
  const auto s = c.s;
  const auto limit = static_cast<float>((1 << (bits - 1)) - 1);
  const auto scale = c.kept(c.over(c.most(mx::abs(w, s)), c.number(limit)));
  const auto usable = mx::greater(scale, c.number(0), s);
  const auto by = mx::where(usable, scale, c.number(1), s);
  const auto q = c.nearest(c.over(w, by), -limit, limit);
  const auto y = mx::where(usable, c.times(scale, q), c.number(0), s);
  return c.or_nan(y, w);
}

Arrays rounded_and_back(
    const Arrays& in,
    mx::StreamOrDevice s,
    QuantKind kind,
    int bits,
    int group,
    mx::Dtype stored
) {
  const auto& w = in[0];
  const GroupMath c{s, stored};
  const auto groups =
      mx::reshape(mx::astype(w, mx::float32, s), {-1, group}, s);
  const auto y = kind == QuantKind::kAffine
                     ? affine_rounded(c, groups, bits)
                     : symmetric_rounded(c, groups, bits);
  return {mx::astype(mx::reshape(y, w.shape(), s), w.dtype(), s)};
}

}  // namespace

bool fake_quant_gpu_has(const QuantFormat& format) {
  return format.kind == QuantKind::kAffine ||
         format.kind == QuantKind::kSymmetric;
}

mx::array fake_quant_gpu(
    const mx::array& w,
    const QuantFormat& f,
    mx::StreamOrDevice s
) {
  const int group = f.group == 0 ? w.shape(-1) : f.group;
  const auto round = [=](const Arrays& in) {
    return compiled(
        rounded_and_back, in, s, f.kind, f.bits, group, stored_as(f.scale)
    );
  };
  const auto through = [](const Arrays&, const Arrays& ct, const Arrays&) {
    return ct;
  };
  return mx::custom_vjp(round, through)({w})[0];
}

}  // namespace hearth::ops
