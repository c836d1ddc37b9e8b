// Rows to quantised formats and back, for one instruction set.
#include "hearth/kernels/isa.h"
#include "hearth/kernels/quant/kquant_impl.h"
#include "hearth/kernels/quant/rows.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace hearth::kernels::HEARTH_ISA {
namespace {

// Sizes of one row, taken once: QuantFormat's own functions are baseline code.
struct Row {
  long block, blocks, groups;
  std::size_t block_bytes, code_bytes;
};

Row row_of(const QuantFormat& f, long cols) {
  Row r;
  r.block = f.block_columns(), r.block_bytes = f.block_bytes();
  r.blocks = cols / r.block;
  r.groups = static_cast<long>(f.scale_count(cols));
  r.code_bytes = f.code_bytes(cols);
  return r;
}

void quantize_affine_row(
    const QuantFormat& f,
    const Row& r,
    const float* w,
    long row,
    const QuantRowsOut& out
) {
  std::uint8_t u[128];
  for (long g = 0; g < r.groups; ++g) {
    float scale, bias;
    affine_group(w + g * f.group, f.group, f.bits, u, &scale, &bias);
    std::uint8_t* codes = out.codes + row * static_cast<long>(r.code_bytes);
    write_bits(u, f.bits, f.group, codes + g * f.group * f.bits / 8);
    store_scale(out.scales, row * r.groups + g, f.scale, scale);
    store_scale(out.biases, row * r.groups + g, f.scale, bias);
  }
}

void quantize_symmetric_row(
    const QuantFormat& f,
    const Row& r,
    const float* w,
    long row,
    long cols,
    const QuantRowsOut& out
) {
  const long group = f.group == 0 ? cols : f.group;
  std::uint8_t u[kStretch];
  std::uint8_t* codes = out.codes + row * static_cast<long>(r.code_bytes);
  for (long g = 0; g < r.groups; ++g) {
    const float scale = store_scale(
        out.scales, row * r.groups + g, f.scale,
        symmetric_scale(w + g * group, group, f.bits)
    );
    const long end = (g + 1) * group;
    for (long c = g * group; c < end; c += kStretch) {
      const int n = static_cast<int>(end - c < kStretch ? end - c : kStretch);
      symmetric_codes(w + c, n, f.bits, scale, u);
      flip_top_bit(u, f.bits, n);
      write_bits(u, f.bits, n, codes + c * f.bits / 8);
    }
  }
}

void quantize_block(QuantKind kind, const float* w, std::uint8_t* out) {
  switch (kind) {
    case QuantKind::kQ8_0:
      q8_0_block(w, out);
      break;
    case QuantKind::kQ4_0:
      q4_0_block(w, out);
      break;
    case QuantKind::kQ4_1:
      q4_1_block(w, out);
      break;
    case QuantKind::kQ4_K:
      k_block(w, 4, out);
      break;
    case QuantKind::kQ5_K:
      k_block(w, 5, out);
      break;
    case QuantKind::kQ6_K:
      q6_k_block(w, out);
      break;
    default:
      break;
  }
}

void quantize(
    const QuantFormat& f,
    const float* w,
    long ld,
    long rows,
    long cols,
    const QuantRowsOut& out
) noexcept {
  const Row r = row_of(f, cols);
  for (long row = 0; row < rows; ++row, w += ld) {
    if (f.kind == QuantKind::kAffine) {
      quantize_affine_row(f, r, w, row, out);
    } else if (f.kind == QuantKind::kSymmetric) {
      quantize_symmetric_row(f, r, w, row, cols, out);
    } else {
      std::uint8_t* blocks = out.codes + row * static_cast<long>(r.code_bytes);
      for (long b = 0; b < r.blocks; ++b) {
        quantize_block(
            f.kind, w + b * r.block,
            blocks + b * static_cast<long>(r.block_bytes)
        );
      }
    }
  }
}

// Rounds n floats (a multiple of 8) to fp16 and back.
void round_to_f16(float* w, int n) {
#if defined(__F16C__)
  for (int i = 0; i < n; i += 8) {
    const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(w + i), 0);
    _mm256_storeu_ps(w + i, _mm256_cvtph_ps(h));
  }
#else
  for (int i = 0; i < n; ++i) w[i] = f16_to_float(float_to_f16(w[i]));
#endif
}

void round_to(ScaleType type, float* w, int n) {
  if (type == ScaleType::kF16) round_to_f16(w, n);
  if (type == ScaleType::kBf16) {
    for (int i = 0; i < n; ++i) w[i] = bf16_to_float(float_to_bf16(w[i]));
  }
}

// n columns from c on, n at most kStretch and all in one group.
void affine_stretch(
    const QuantFormat& f,
    const Row& r,
    const QuantRows& in,
    long row,
    long c,
    int n,
    float* w
) {
  std::uint8_t u[kStretch];
  const std::uint8_t* codes = in.codes + row * static_cast<long>(r.code_bytes);
  const long g = row * r.groups + c / f.group;
  const float scale = load_scale(in.scales, g, f.scale);
  const float bias = load_scale(in.biases, g, f.scale);
  read_bits(codes + c * f.bits / 8, f.bits, n, u);
  for (int i = 0; i < n; ++i) w[i] = scale * static_cast<float>(u[i]);
  round_to(f.scale, w, n);
  for (int i = 0; i < n; ++i) w[i] += bias;
  round_to(f.scale, w, n);
}

void symmetric_stretch(
    const QuantFormat& f,
    const Row& r,
    const QuantRows& in,
    long row,
    long c,
    int n,
    float* w
) {
  std::uint8_t u[kStretch];
  const std::uint8_t* codes = in.codes + row * static_cast<long>(r.code_bytes);
  const long g = row * r.groups + (f.group == 0 ? 0 : c / f.group);
  const float scale = load_scale(in.scales, g, f.scale);
  const int offset = code_offset(f);
  read_bits(codes + c * f.bits / 8, f.bits, n, u);
  flip_top_bit(u, f.bits, n);
  for (int i = 0; i < n; ++i) w[i] = scale * static_cast<float>(u[i] - offset);
}

// One K-quant block: sub-blocks of 32 (Q4_K, Q5_K) or 16 (Q6_K).
void k_stretch(
    QuantKind kind,
    const std::uint8_t* block,
    const std::uint8_t* u,
    float* w
) {
  if (kind == QuantKind::kQ6_K) {
    const float d = f16_to_float(load_u16(block + 208));
    for (int i = 0; i < 256; ++i) {
      const auto scale = static_cast<std::int8_t>(block[192 + i / 16]);
      w[i] = d * static_cast<float>(scale) * static_cast<float>(u[i] - 32);
    }
    return;
  }
  std::uint8_t scale[8], min[8];
  read_k_scales(block + 4, scale, min);
  const float d = f16_to_float(load_u16(block));
  const float dmin = f16_to_float(load_u16(block + 2));
  for (int j = 0; j < 8; ++j) {
    const float step = d * static_cast<float>(scale[j]);
    const float low = dmin * static_cast<float>(min[j]);
    for (int i = 32 * j; i < 32 * j + 32; ++i) {
      w[i] = step * static_cast<float>(u[i]) - low;
    }
  }
}

void gguf_stretch(QuantKind kind, const std::uint8_t* block, float* w) {
  std::uint8_t u[kStretch];
  read_block(kind, block, u);
  const float d = f16_to_float(load_u16(block));
  if (kind == QuantKind::kQ4_1) {
    const float low = f16_to_float(load_u16(block + 2));
    for (int i = 0; i < 32; ++i) w[i] = d * static_cast<float>(u[i]) + low;
  } else if (kind == QuantKind::kQ8_0 || kind == QuantKind::kQ4_0) {
    const int offset = kind == QuantKind::kQ8_0 ? 128 : 8;
    for (int i = 0; i < 32; ++i) w[i] = d * static_cast<float>(u[i] - offset);
  } else {
    k_stretch(kind, block, u, w);
  }
}

// The columns decoded at a time.
long stretch_of(const QuantFormat& f, const Row& r) {
  if (f.kind == QuantKind::kAffine) return f.group;
  if (f.kind != QuantKind::kSymmetric) return r.block;
  return f.group == 0 || f.group > kStretch ? 32 : f.group;
}

void decode_stretch(
    const QuantFormat& f,
    const Row& r,
    const QuantRows& in,
    long row,
    long c,
    int n,
    float* w
) {
  if (f.kind == QuantKind::kAffine) {
    affine_stretch(f, r, in, row, c, n, w);
  } else if (f.kind == QuantKind::kSymmetric) {
    symmetric_stretch(f, r, in, row, c, n, w);
  } else {
    const long bytes = static_cast<long>(r.block_bytes);
    gguf_stretch(
        f.kind,
        in.codes + row * static_cast<long>(r.code_bytes) + c / r.block * bytes,
        w
    );
  }
}

void dequantize(
    const QuantFormat& f,
    const QuantRows& in,
    long rows,
    long cols,
    float* w,
    long ld
) noexcept {
  const Row r = row_of(f, cols);
  const long step = stretch_of(f, r);
  for (long row = 0; row < rows; ++row) {
    for (long c = 0; c < cols; c += step) {
      const int n = static_cast<int>(cols - c < step ? cols - c : step);
      decode_stretch(f, r, in, row, c, n, w + row * ld + c);
    }
  }
}

void dequantize_bf16(
    const QuantFormat& f,
    const QuantRows& in,
    long rows,
    long cols,
    std::uint16_t* w,
    long ld
) noexcept {
  const Row r = row_of(f, cols);
  const long step = stretch_of(f, r);
  float values[kStretch];
  for (long row = 0; row < rows; ++row) {
    for (long c = 0; c < cols; c += step) {
      const int n = static_cast<int>(cols - c < step ? cols - c : step);
      decode_stretch(f, r, in, row, c, n, values);
      for (int i = 0; i < n; ++i)
        w[row * ld + c + i] = float_to_bf16(values[i]);
    }
  }
}

}  // namespace

const QuantRowKernels quant_rows{
    .quantize = quantize,
    .dequantize = dequantize,
    .dequantize_bf16 = dequantize_bf16,
};

}  // namespace hearth::kernels::HEARTH_ISA
