#pragma once
// Widens quantised panels to the layout that the dense bf16 products read: for
// every pair of columns one word a row, `columns` rows (a dense panel's
// columns) side by side. A long prompt is multiplied this way: only weights are
// rounded, to bf16, and AMX tiles run where there are any.
#include "hearth/kernels/quant/panel_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// Two columns of sixteen weights as sixteen pairs.
inline void put_pairs(const float* low, const float* high, std::uint32_t* out) {
#if defined(__AVX512BF16__)
  const __m512i a =
      _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(low)));
  const __m512i b =
      _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(high)));
  _mm512_storeu_si512(out, _mm512_or_si512(a, _mm512_slli_epi32(b, 16)));
#else
  for (int r = 0; r < kRows; ++r) {
    out[r] = float_to_bf16(low[r]) |
             static_cast<std::uint32_t>(float_to_bf16(high[r])) << 16;
  }
#endif
}

void widen_panels(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long begin,
    long end,
    long columns,
    void* out
) noexcept {
  const long chunks = (l.cols + kChunk - 1) / kChunk;
  const long words = chunks * kChunk / 2;
  alignas(64) float w[kChunk * kRows];
  auto* start = static_cast<std::uint32_t*>(out);
  for (long p = begin; p < end; ++p) {
    const std::uint8_t* panel =
        packed + static_cast<std::size_t>(p) * l.panel_bytes;
    const long row = (p - begin) * kRows;
    std::uint32_t* to = start + row / columns * columns * words + row % columns;
    for_bits(l.format.bits, [&]<int kBits>() {
      for (long c = 0; c < chunks; ++c) {
        chunk_weights<kBits>(l, panel, c, w);
        for (long k = 0; k < kChunk; k += 2) {
          put_pairs(
              w + k * kRows, w + (k + 1) * kRows,
              to + (c * kChunk + k) / 2 * columns
          );
        }
      }
    });
  }
  // A dense panel that is only half there is filled up with zeros.
  const long rows = (end - begin) * kRows;
  if (rows % columns == 0) return;
  std::uint32_t* to = start + rows / columns * columns * words;
  for (long k = 0; k < words; ++k) {
    for (long r = rows % columns; r < columns; ++r) to[k * columns + r] = 0;
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
