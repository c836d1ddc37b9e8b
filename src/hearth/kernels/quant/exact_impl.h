#pragma once
// The exact products: a panel is read as fp32 weights, 16 outputs side by
// side, and every row of activations runs over it.
#include "hearth/kernels/quant/matmul_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// kR rows of a (lda apart) times w[k][16], k < n.
template <int kR>
inline void exact_rows(
    const float* a,
    long lda,
    long row,
    long rows,
    const float* w,
    long n,
    const QuantMatrix& y,
    long column,
    long count
) {
  for (; row + kR <= rows; row += kR) {
    Floats f[kR];
    for (auto& lane : f) lane = splat(0.0f);
    const float* x = a + row * lda;
    for (long k = 0; k < n; ++k) {
      const Floats v = load_floats(w + k * kRows);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) f[r] = fma(splat(x[r * lda + k]), v, f[r]);
    }
    for (int r = 0; r < kR; ++r) store_row(y, row + r, column, count, f[r]);
  }
  if constexpr (kR > 1) {
    if (row < rows) {
      exact_rows<kR - 1>(a, lda, row, rows, w, n, y, column, count);
    }
  }
}

void exact_product(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long begin,
    long end,
    const float* x,
    long ldx,
    long rows,
    const QuantMatrix& y,
    void* scratch
) noexcept {
  auto* w = static_cast<float*>(scratch);
  for (long p = begin; p < end; ++p) {
    const std::uint8_t* panel =
        packed + static_cast<std::size_t>(p) * l.panel_bytes;
    for_bits(l.format.bits, [&]<int kBits>() {
      for (long c = 0; c < l.columns / kChunk; ++c) {
        chunk_weights<kBits>(l, panel, c, w + c * kChunk * kRows);
      }
    });
    exact_rows<kExactRows>(
        x, ldx, 0, rows, w, l.cols, y, p * kRows, l.rows - p * kRows
    );
  }
}

// A chunk of every panel as w[half][row][16 columns].
template <int kBits>
inline void transposed_chunk(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long chunk,
    float* w
) {
  alignas(64) float columns[kChunk * kRows];
  for (long p = 0; p < l.panels; ++p) {
    const std::uint8_t* panel =
        packed + static_cast<std::size_t>(p) * l.panel_bytes;
    chunk_weights<kBits>(l, panel, chunk, columns);
    for (int half = 0; half < 2; ++half) {
      float* out = w + (half * l.panels + p) * kRows * 16;
      for (int r = 0; r < kRows; ++r) {
        for (int k = 0; k < 16; ++k) {
          out[r * 16 + k] = columns[(16 * half + k) * kRows + r];
        }
      }
    }
  }
}

void exact_gradient(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long begin,
    long end,
    const float* dy,
    long lddy,
    long rows,
    const QuantMatrix& dx,
    void* scratch
) noexcept {
  auto* w = static_cast<float*>(scratch);
  for (long c = begin; c < end; ++c) {
    for_bits(l.format.bits, [&]<int kBits>() {
      transposed_chunk<kBits>(l, packed, c, w);
    });
    for (long column = c * kChunk; column < (c + 1) * kChunk; column += 16) {
      if (column >= l.cols) break;
      const float* half = w + (column / 16 % 2) * l.panels * kRows * 16;
      exact_rows<kExactRows>(
          dy, lddy, 0, rows, half, l.rows, dx, column, l.cols - column
      );
    }
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
