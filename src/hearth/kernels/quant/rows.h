#pragma once
// Rows of weights to and from each quantised format. Results are the same bits
// on every instruction set and do not depend on how rows are shared out.
//
// A group (for K-quants: a block of 256) that holds a NaN or an infinity gets
// a NaN scale, so all of it reads back as NaN. A scale beyond its type's range
// is stored as infinity.
//
// Dequantising affine rounds product and sum to the scale's type, as
// mx::dequantize does; the other formats compute in fp32, as llama.cpp does.
#include <cstdint>

#include "hearth/kernels/quant/format.h"

namespace hearth::kernels {

struct QuantRowKernels {
  // w is rows x cols with ld floats from row to row. The format and cols must
  // have passed QuantFormat::check, and the arrays have room for `rows` rows.
  void (*quantize)(
      const QuantFormat& format,
      const float* w,
      long ld,
      long rows,
      long cols,
      const QuantRowsOut& out
  ) noexcept;
  void (*dequantize)(
      const QuantFormat& format,
      const QuantRows& in,
      long rows,
      long cols,
      float* w,
      long ld
  ) noexcept;
  // The same, rounded to bf16 at the end.
  void (*dequantize_bf16)(
      const QuantFormat& format,
      const QuantRows& in,
      long rows,
      long cols,
      std::uint16_t* w,
      long ld
  ) noexcept;
};

}  // namespace hearth::kernels
