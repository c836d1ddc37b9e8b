// What rounding to a format and back means, in MLX's own ops: its quantize()
// for affine formats, and codes of the largest size in a group for symmetric
// ones. GGUF's formats have their oracle in kernels/quant.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/fake_quant/faces_impl.h"

namespace hearth::ops {
namespace {

using kernels::QuantFormat;
using kernels::QuantKind;

mx::array affine(const mx::array& w, const QuantFormat& f) {
  const auto cpu = mx::Device::cpu;
  const auto q = mx::quantize(w, f.group, f.bits, "affine", {}, cpu);
  return mx::dequantize(
      q[0], q[1], q[2], f.group, f.bits, "affine", {}, {}, cpu
  );
}

mx::array symmetric(const mx::array& w, const QuantFormat& f) {
  const auto most = mx::array(static_cast<float>((1 << (f.bits - 1)) - 1));
  const int group = f.group == 0 ? w.shape(-1) : f.group;
  const auto groups = mx::reshape(w, {-1, group});
  const auto scale = mx::divide(mx::max(mx::abs(groups), -1, true), most);
  const auto none = mx::equal(scale, mx::array(0.0f));
  const auto by = mx::where(none, mx::array(1.0f), scale);
  const auto codes =
      mx::round(mx::clip(mx::divide(groups, by), mx::negative(most), most));
  return mx::reshape(mx::multiply(scale, codes), w.shape());
}

}  // namespace

mx::array fake_quant_reference(const mx::array& w, const QuantFormat& format) {
  const auto wide = mx::astype(w, mx::float32);
  if (format.scale == kernels::ScaleType::kF32) {
    if (format.kind == QuantKind::kAffine) return affine(wide, format);
    if (format.kind == QuantKind::kSymmetric) return symmetric(wide, format);
  }
  throw UsageError(
      fmt::format(
          "[ops.fake_quant] the definition must have a format with float32 "
          "scales, got {}",
          format.name()
      )
  );
}

}  // namespace hearth::ops
