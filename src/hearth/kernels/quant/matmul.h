#pragma once
// Activations times quantised weights, y = x * W^T, and its gradient with
// respect to x, on weights in PackedLayout.
//
// Two ways, chosen by QuantCompute:
//   kExact  weights are read as fp32 and multiplied in fp32: the reference.
//   kInt8   activations are rounded to int8, one scale per row and unit of 16,
//           32 or 64 columns (absmax / 127); products are summed in int32
//           within a unit, then scaled and summed in fp32. This is how decoding
//           and prefill run. The relative error of a unit's activations is at
//           most 1/254 of its largest.
// All formats run through the same kernels: w = scale * (code - offset) or
// scale * code + min. One activation row, and with many registers up to
// eight, stream the bit planes directly; more rows first widen two panels to
// bytes (8-bit codes are used in place).
//
// A row of x that holds a NaN or an infinity makes its whole row of y NaN in
// kInt8; in kExact it propagates as in any product. A row's result depends on
// neither the other rows nor on how panels are shared out among threads.
#include <cstddef>
#include <cstdint>

#include "hearth/kernels/quant/packed.h"

namespace hearth::kernels {

enum class QuantCompute : std::uint8_t { kInt8, kExact };

// Activations in int8 and what goes with them, all row-major and dense.
struct QuantActivations {
  std::int8_t* codes = nullptr;    // rows x columns, padded with zeros
  float* scales = nullptr;         // rows x units
  std::int32_t* starts = nullptr;  // rows x units: what a unit's sum begins at
  float* sums = nullptr;           // rows x groups, only where has_min
};

// Rows of activations that tiles take at a time: as many as a second-level
// cache holds beside the weights.
constexpr long quant_row_block(long columns) {
  const long rows = (1L << 20) / columns / 32 * 32;
  return rows < 32 ? 32 : rows > 256 ? 256 : rows;
}

// A matrix of fp32 or bf16, ld elements from row to row. To a result the bias
// of its column is added and, with `adds`, which is for fp32 alone, what the
// matrix held before.
struct QuantMatrix {
  void* data = nullptr;
  long ld = 0;
  bool bf16 = false;
  bool adds = false;
  const float* bias = nullptr;
};

struct QuantMatmulKernels {
  // Rows [begin, end) of x, rounded. x is only read.
  void (*round_activations)(
      const PackedLayout& layout,
      const QuantMatrix& x,
      long begin,
      long end,
      const QuantActivations& out
  ) noexcept;
  // All rows of y, columns 16 * begin .. 16 * end (cut at layout.rows).
  // scratch: QuantScratch's `panel` bytes, 64-byte aligned, one a thread.
  void (*int8)(
      const PackedLayout& layout,
      const std::uint8_t* packed,
      long begin,
      long end,
      const QuantActivations& x,
      long rows,
      const QuantMatrix& y,
      void* scratch
  ) noexcept;
  // The same from fp32 activations, weights exact.
  void (*exact)(
      const PackedLayout& layout,
      const std::uint8_t* packed,
      long begin,
      long end,
      const float* x,
      long ldx,
      long rows,
      const QuantMatrix& y,
      void* scratch
  ) noexcept;
  // dx = dy * W for chunks of 32 columns of dx, [begin, end), exact.
  void (*input_gradient)(
      const PackedLayout& layout,
      const std::uint8_t* packed,
      long begin,
      long end,
      const float* dy,
      long lddy,
      long rows,
      const QuantMatrix& dx,
      void* scratch
  ) noexcept;
  // Panels [begin, end) in the order in which the table's bf16 GemmFamily
  // reads an operand of their rows, in panels of `columns` of them; weights
  // are rounded to bf16.
  void (*widen)(
      const PackedLayout& layout,
      const std::uint8_t* packed,
      long begin,
      long end,
      long columns,
      void* out
  ) noexcept;
};

}  // namespace hearth::kernels
