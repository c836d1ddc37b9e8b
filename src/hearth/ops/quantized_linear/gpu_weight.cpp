#include "hearth/ops/quantized_linear/gpu_weight.h"

namespace hearth::ops {
namespace {

using kernels::QuantKind;

// The host reads the file, so it moves the bytes, too.
const mx::Device kHost = mx::Device::cpu;

constexpr int kBlock = 32, kBlockBytes = 34;  // of q8_0: a float16, 32 codes

// Signed codes to unsigned ones and back: each loses or gains the offset, which
// turns its highest bit.
mx::array turned(const mx::array& bytes, int bits) {
  const std::uint8_t highest = bits == 8 ? 0x80 : 0x88;
  return mx::bitwise_xor(bytes, mx::array(highest), kHost);
}
mx::array as_words(const mx::array& bytes) {
  return mx::view(mx::contiguous(bytes, false, kHost), mx::uint32, kHost);
}
mx::array as_bytes(const mx::array& a) {
  return mx::view(mx::contiguous(a, false, kHost), mx::uint8, kHost);
}

mx::array offset_biases(const mx::array& scales, int bits) {
  const auto offset = mx::array(-(1 << (bits - 1)), scales.dtype());
  return mx::multiply(scales, offset, kHost);
}

// The longest group of MLX's that divides one of the format's; 0: none.
int group_of(int columns) {
  for (const int g : {128, 64, 32}) {
    if (columns % g == 0) return g;
  }
  return 0;
}

mx::array part_of_blocks(const mx::array& blocks, int begin, int end) {
  mx::Shape from{0, 0, begin}, to = blocks.shape();
  to[2] = end;
  return mx::contiguous(mx::slice(blocks, from, to, kHost), false, kHost);
}

}  // namespace

GpuQuantized::GpuQuantized(
    const QuantFormat& format,
    int group,
    mx::array codes,
    const Numbers& stored
)
    : format_(format),
      group_(group),
      codes_(std::move(codes)),
      stored_(stored),
      half_{
          mx::astype(stored.scales, mx::bfloat16, kHost),
          mx::astype(stored.biases, mx::bfloat16, kHost)
      } {
  mx::eval(codes_, stored_.scales, stored_.biases, half_.scales, half_.biases);
}

std::optional<GpuQuantized> GpuQuantized::of(
    const QuantFormat& f,
    int cols,
    const QuantizedArrays& a
) {
  if (f.kind == QuantKind::kAffine) {
    return GpuQuantized(f, f.group, a.codes, {*a.scales, *a.biases});
  }
  if (f.kind == QuantKind::kSymmetric) {
    const int own = f.group == 0 ? cols : f.group, group = group_of(own);
    if (group == 0) return {};
    const auto scales = mx::repeat(*a.scales, own / group, 1, kHost);
    return GpuQuantized(
        f, group, as_words(turned(a.codes, f.bits)),
        {scales, offset_biases(scales, f.bits)}
    );
  }
  if (f.kind != QuantKind::kQ8_0) return {};
  const int rows = a.codes.shape(0), count = cols / kBlock;
  const auto blocks = mx::reshape(a.codes, {rows, count, kBlockBytes}, kHost);
  const auto scales = mx::reshape(
      mx::view(part_of_blocks(blocks, 0, 2), mx::float16, kHost), {rows, count},
      kHost
  );
  const auto codes =
      mx::reshape(part_of_blocks(blocks, 2, kBlockBytes), {rows, cols}, kHost);
  return GpuQuantized(
      f, kBlock, as_words(turned(codes, 8)), {scales, offset_biases(scales, 8)}
  );
}

QuantizedArrays GpuQuantized::arrays() const {
  if (format_.kind == QuantKind::kAffine) {
    return {codes_, stored_.scales, stored_.biases};
  }
  const auto codes = turned(as_bytes(codes_), format_.bits);
  const int rows = codes.shape(0);
  if (format_.kind == QuantKind::kQ8_0) {
    const int count = stored_.scales.shape(1);
    const auto heads =
        mx::reshape(as_bytes(stored_.scales), {rows, count, 2}, kHost);
    const auto all = mx::concatenate(
        {heads, mx::reshape(codes, {rows, count, kBlock}, kHost)}, 2, kHost
    );
    return {mx::reshape(all, {rows, count * kBlockBytes}, kHost), {}, {}};
  }
  const int cols = stored_.scales.shape(1) * group_;
  const int times = (format_.group == 0 ? cols : format_.group) / group_;
  const auto scales = mx::slice(
      stored_.scales, {0, 0}, stored_.scales.shape(), {1, times}, kHost
  );
  return {codes, mx::contiguous(scales, false, kHost), {}};
}

std::size_t GpuQuantized::nbytes() const {
  std::size_t bytes = codes_.nbytes();
  for (const Numbers* n : {&stored_, &half_}) {
    bytes += n->scales.nbytes() + n->biases.nbytes();
  }
  return bytes;
}

mx::array GpuQuantized::product(
    const mx::array& x,
    mx::StreamOrDevice s
) const {
  const Numbers& n = x.dtype() == mx::bfloat16 ? half_ : stored_;
  // Where MLX's CPU stands in for a GPU it would add in x's type, too.
  const bool cpu = mx::to_stream(s).device == mx::Device::cpu;
  const auto y = mx::quantized_matmul(
      cpu ? wide(x, s) : x, codes_, n.scales, n.biases, true, group_,
      format_.bits, "affine", s
  );
  return mx::astype(y, x.dtype(), s);
}

}  // namespace hearth::ops
