#pragma once
// Reading a panel: its scales as floats, its codes as bytes or as weights; and
// writing sixteen results.
#include "hearth/kernels/quant/half_impl.h"
#include "hearth/kernels/quant/lanes_impl.h"
#include "hearth/kernels/quant/matmul.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr long kRows = PackedLayout::kPanelRows;
constexpr long kChunk = PackedLayout::kChunkColumns;

struct GroupScale {
  Floats scale, min;
};

inline Floats load_lanes(const std::uint8_t* p, ScaleType type) {
  if (type == ScaleType::kF16) return load_f16(p);
  if (type == ScaleType::kBf16) return load_bf16(p);
  Floats f;
  std::memcpy(&f, p, sizeof(f));
  return f;
}

// K-quants: a byte per group times an fp16 per 256 columns, exact in fp32.
inline GroupScale k_scale(
    const PackedLayout& l,
    const std::uint8_t* scales,
    long g
) {
  const long supers = l.columns / 256, s = g * l.group / 256;
  GroupScale out;
  if (l.format.kind == QuantKind::kQ6_K) {
    const std::uint8_t* tops = scales + l.groups * kRows;
    out.scale =
        mul(load_f16(tops + 2 * s * kRows), load_i8(scales + g * kRows));
    out.min = splat(0.0f);
    return out;
  }
  const std::uint8_t* mins = scales + l.groups * kRows;
  const std::uint8_t* tops = mins + l.groups * kRows;
  out.scale = mul(load_f16(tops + 2 * s * kRows), load_u8(scales + g * kRows));
  const Floats low =
      mul(load_f16(tops + 2 * (supers + s) * kRows), load_u8(mins + g * kRows));
  out.min = sub(splat(0.0f), low);
  return out;
}

// Sixteen rows' scale and minimum of group g.
inline GroupScale group_scale(
    const PackedLayout& l,
    const std::uint8_t* panel,
    long g
) {
  const std::uint8_t* scales = panel + l.code_bytes;
  const QuantKind kind = l.format.kind;
  if (kind == QuantKind::kQ4_K || kind == QuantKind::kQ5_K ||
      kind == QuantKind::kQ6_K) {
    return k_scale(l, scales, g);
  }
  const ScaleType type = l.format.scale;
  const long size = type == ScaleType::kF32 ? 4 : 2;
  GroupScale out;
  out.scale = load_lanes(scales + g * kRows * size, type);
  out.min = l.has_min ? load_lanes(scales + (l.groups + g) * kRows * size, type)
                      : splat(0.0f);
  return out;
}

// All scales of a panel as fp32, [group][16]; the minima too where there are.
inline void read_scales(
    const PackedLayout& l,
    const std::uint8_t* panel,
    float* scale,
    float* min
) {
  if (l.format.scale == ScaleType::kF16 && !l.has_min && l.group == 32) {
    // The usual case when decoding, without a branch for each group.
    const std::uint8_t* from = panel + l.code_bytes;
    for (long i = 0; i < l.groups * kRows; i += kRows) {
      store_floats(scale + i, load_f16(from + 2 * i));
    }
    return;
  }
  for (long g = 0; g < l.groups; ++g) {
    const GroupScale s = group_scale(l, panel, g);
    store_floats(scale + g * kRows, s.scale);
    if (l.has_min) store_floats(min + g * kRows, s.min);
  }
}

// Sixteen lanes of row `row` from column `column` on, as many as there are.
inline void store_row(
    const QuantMatrix& m,
    long row,
    long column,
    long count,
    Floats f
) {
  const bool whole = count >= 16;
  if (whole && m.bias != nullptr) f = add(f, load_floats(m.bias + column));
  if (whole && !m.bf16) {
    float* y = static_cast<float*>(m.data) + row * m.ld + column;
    store_floats(y, m.adds ? add(load_floats(y), f) : f);
    return;
  }
#if defined(__AVX512VNNI__)
  if (whole) {
    store_bf16(static_cast<std::uint16_t*>(m.data) + row * m.ld + column, f);
    return;
  }
#endif
  float lanes[16];
  store_floats(lanes, f);
  for (long l = 0; l < (whole ? 16 : count); ++l) {
    const long at = row * m.ld + column + l;
    float x = lanes[l];
    if (!whole && m.bias != nullptr) x += m.bias[column + l];
    if (m.bf16) {
      static_cast<std::uint16_t*>(m.data)[at] = float_to_bf16(x);
    } else {
      float& y = static_cast<float*>(m.data)[at];
      y = m.adds ? y + x : x;
    }
  }
}

// Calls body.template operator()<bits>() for the format's width.
template <class Body>
inline void for_bits(int bits, const Body& body) {
  switch (bits) {
    case 2:
      body.template operator()<2>();
      break;
    case 3:
      body.template operator()<3>();
      break;
    case 4:
      body.template operator()<4>();
      break;
    case 5:
      body.template operator()<5>();
      break;
    case 6:
      body.template operator()<6>();
      break;
    default:
      body.template operator()<8>();
      break;
  }
}

// A panel's codes, a byte each, as 8-bit formats have them.
template <int kBits>
inline void widen_codes(
    const std::uint8_t* codes,
    long chunks,
    std::uint8_t* out
) {
  for (long c = 0; c < chunks; ++c, codes += 64 * kBits, out += 512) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j)
      store_bytes(out + 64 * j, operand<kBits>(codes, j));
  }
}

// A chunk as weights: out[column][16 rows].
template <int kBits>
inline void chunk_weights(
    const PackedLayout& l,
    const std::uint8_t* panel,
    long chunk,
    float* out
) {
  const std::uint8_t* codes = panel + chunk * 64 * kBits;
  const Floats offset = splat(static_cast<float>(l.offset));
  GroupScale s = group_scale(l, panel, chunk * kChunk / l.group);
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    // Only Q6_K has two groups in a chunk.
    if (j == 4 && l.group == 16) s = group_scale(l, panel, 2 * chunk + 1);
    const Bytes u = operand<kBits>(codes, j);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Floats code = sub(to_float(byte_of(u, i)), offset);
      const Floats w =
          l.has_min ? fma(s.scale, code, s.min) : mul(s.scale, code);
      store_floats(out + (4 * j + i) * kRows, w);
    }
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
