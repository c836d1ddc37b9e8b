#include "hearth/ops/quantized_linear/gpu_weight.h"

namespace hearth::ops {
namespace {

using kernels::QuantKind;

// The host reads the file, so it moves the bytes, too.
const mx::Device kHost = mx::Device::cpu;

// In which order the codes of a block come: so many bytes whose low halves are
// followed by their high ones. 0: a byte a code, in the order of columns. None
// for blocks that are not affine.
std::optional<int> run_of(QuantKind kind) {
  if (kind == QuantKind::kQ8_0) return 0;
  if (kind == QuantKind::kQ4_0 || kind == QuantKind::kQ4_1) return 16;
  if (kind == QuantKind::kQ4_K) return 32;
  return {};
}

// llama.cpp's blocks: numbers first, then codes.
struct GgufBlock {
  int columns, head, codes;  // bytes of the latter two
  int run;
};
std::optional<GgufBlock> block_of(const QuantFormat& f) {
  const auto run = run_of(f.kind);
  if (!run) return {};
  const int columns = static_cast<int>(f.block_columns());
  const int codes = columns * f.bits / 8;
  return GgufBlock{
      columns, static_cast<int>(f.block_bytes()) - codes, codes, *run
  };
}

// Signed codes to unsigned ones and back: the offset between them flips the
// highest bit.
mx::array flipped(const mx::array& bytes, int bits) {
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

// Bytes begin..end of the last dimension.
mx::array bytes_from(const mx::array& a, int begin, int end) {
  mx::Shape from(a.ndim(), 0), to = a.shape();
  from.back() = begin, to.back() = end;
  return mx::contiguous(mx::slice(a, from, to, kHost), false, kHost);
}
mx::array halves(const mx::array& bytes) {
  return mx::view(bytes, mx::float16, kHost);
}

mx::array low(const mx::array& a) {
  return mx::bitwise_and(a, mx::array(std::uint8_t{15}), kHost);
}
mx::array high(const mx::array& a) {
  return mx::right_shift(a, mx::array(std::uint8_t{4}), kHost);
}
mx::array joined(const mx::array& low_half, const mx::array& high_half) {
  const auto up = mx::left_shift(high_half, mx::array(std::uint8_t{4}), kHost);
  return mx::bitwise_or(low_half, up, kHost);
}
// Codes of 4 bits from the order in which a run's low halves come first to that
// of columns, and back.
mx::array by_columns(const mx::array& bytes, int run) {
  const auto runs = mx::reshape(bytes, {-1, run}, kHost);
  const auto codes = mx::reshape(
      mx::concatenate({low(runs), high(runs)}, 1, kHost), {-1, run, 2}, kHost
  );
  const auto packed = joined(bytes_from(codes, 0, 1), bytes_from(codes, 1, 2));
  return mx::reshape(packed, bytes.shape(), kHost);
}
mx::array by_runs(const mx::array& bytes, int run) {
  const auto runs = mx::reshape(bytes, {-1, run, 1}, kHost);
  const auto codes = mx::reshape(
      mx::concatenate({low(runs), high(runs)}, 2, kHost), {-1, 2 * run}, kHost
  );
  const auto packed =
      joined(bytes_from(codes, 0, run), bytes_from(codes, run, 2 * run));
  return mx::reshape(packed, bytes.shape(), kHost);
}

// The numbers of q4_k's eight groups out of a block's head: two float16, then 6
// bits for each scale and each minimum, of which the last four pairs lie in
// what the first leave free.
struct KNumbers {
  mx::array scales, biases;
};
KNumbers k_numbers(const mx::array& head) {
  const auto wide = [](const mx::array& a) {
    return mx::astype(a, mx::float32, kHost);
  };
  const auto six = [](const mx::array& a) {
    return mx::bitwise_and(a, mx::array(std::uint8_t{63}), kHost);
  };
  const auto top = [](const mx::array& a) {
    return mx::right_shift(a, mx::array(std::uint8_t{6}), kHost);
  };
  const auto first = bytes_from(head, 4, 8), second = bytes_from(head, 8, 12);
  const auto rest = bytes_from(head, 12, 16);
  const auto scale =
      mx::concatenate({six(first), joined(low(rest), top(first))}, 2, kHost);
  const auto minimum =
      mx::concatenate({six(second), joined(high(rest), top(second))}, 2, kHost);
  const auto d = wide(halves(bytes_from(head, 0, 2)));
  const auto d_minimum = wide(halves(bytes_from(head, 2, 4)));
  return {
      mx::multiply(d, wide(scale), kHost),
      mx::negative(mx::multiply(d_minimum, wide(minimum), kHost), kHost)
  };
}

}  // namespace

GpuQuantized::GpuQuantized(
    const QuantFormat& format,
    int group,
    mx::array codes,
    const Numbers& stored,
    std::optional<mx::array> heads
)
    : format_(format),
      group_(group),
      codes_(std::move(codes)),
      stored_(stored),
      half_{
          mx::astype(stored.scales, mx::bfloat16, kHost),
          mx::astype(stored.biases, mx::bfloat16, kHost)
      },
      heads_(std::move(heads)) {
  Arrays all{
      codes_, stored_.scales, stored_.biases, half_.scales, half_.biases
  };
  if (heads_) all.push_back(*heads_);
  mx::eval(all);
}

std::optional<GpuQuantized> GpuQuantized::of(
    const QuantFormat& f,
    int cols,
    const QuantizedArrays& a
) {
  if (f.kind == QuantKind::kAffine) {
    return GpuQuantized(f, f.group, a.codes, {*a.scales, *a.biases});
  }
  if (f.kind != QuantKind::kSymmetric) return of_blocks(f, cols, a.codes);
  const int own = f.group == 0 ? cols : f.group, group = group_of(own);
  if (group == 0) return {};
  const auto scales = mx::repeat(*a.scales, own / group, 1, kHost);
  return GpuQuantized(
      f, group, as_words(flipped(a.codes, f.bits)),
      {scales, offset_biases(scales, f.bits)}
  );
}

std::optional<GpuQuantized> GpuQuantized::of_blocks(
    const QuantFormat& f,
    int cols,
    const mx::array& bytes
) {
  const auto layout = block_of(f);
  if (!layout) return {};
  const int rows = bytes.shape(0), count = cols / layout->columns;
  const int end = layout->head + layout->codes;
  const auto blocks = mx::reshape(bytes, {rows, count, end}, kHost);
  const auto head = bytes_from(blocks, 0, layout->head);
  const auto own = bytes_from(blocks, layout->head, end);
  const auto codes =
      layout->run == 0 ? flipped(own, 8) : by_columns(own, layout->run);
  const auto words =
      as_words(mx::reshape(codes, {rows, count * layout->codes}, kHost));
  const auto flat = [&](const mx::array& numbers) {
    return mx::reshape(numbers, {rows, cols / f.group}, kHost);
  };
  if (f.kind == QuantKind::kQ4_K) {
    const KNumbers n = k_numbers(head);
    return GpuQuantized(
        f, f.group, words, {flat(n.scales), flat(n.biases)}, head
    );
  }
  const auto scales = flat(halves(bytes_from(head, 0, 2)));
  const auto biases = f.kind == QuantKind::kQ4_1
                          ? flat(halves(bytes_from(head, 2, 4)))
                          : offset_biases(scales, f.bits);
  return GpuQuantized(f, f.group, words, {scales, biases});
}

// The blocks as llama.cpp's file has them.
mx::array GpuQuantized::blocks() const {
  const auto layout = *block_of(format_);
  const int rows = codes_.shape(0);
  const int count = stored_.scales.shape(1) * group_ / layout.columns;
  const auto bytes =
      mx::reshape(as_bytes(codes_), {rows, count, layout.codes}, kHost);
  const auto codes =
      layout.run == 0 ? flipped(bytes, 8) : by_runs(bytes, layout.run);
  const auto number = [&](const mx::array& a) {
    return mx::reshape(as_bytes(a), {rows, count, 2}, kHost);
  };
  Arrays parts;
  if (heads_) {
    parts.push_back(*heads_);
  } else {
    parts.push_back(number(stored_.scales));
    if (layout.head == 4) parts.push_back(number(stored_.biases));
  }
  parts.push_back(codes);
  return mx::reshape(
      mx::concatenate(parts, 2, kHost),
      {rows, count * (layout.head + layout.codes)}, kHost
  );
}

QuantizedArrays GpuQuantized::arrays() const {
  if (format_.kind == QuantKind::kAffine) {
    return {codes_, stored_.scales, stored_.biases};
  }
  if (format_.kind != QuantKind::kSymmetric) return {blocks(), {}, {}};
  const auto codes = flipped(as_bytes(codes_), format_.bits);
  const int cols = stored_.scales.shape(1) * group_;
  const int times = (format_.group == 0 ? cols : format_.group) / group_;
  const auto scales = mx::slice(
      stored_.scales, {0, 0}, stored_.scales.shape(), {1, times}, kHost
  );
  return {codes, mx::contiguous(scales, false, kHost), {}};
}

std::size_t GpuQuantized::nbytes() const {
  std::size_t bytes = codes_.nbytes() + (heads_ ? heads_->nbytes() : 0);
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
