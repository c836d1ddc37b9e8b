#pragma once
// A quantised weight as a GPU multiplies by it: MLX's affine codes, scales and
// biases. Formats that are affine in other bytes are put so, code for code, and
// come back bit for bit; so the weight is held once.
//   affine       as it is
//   symmetric    scale q = scale (q + offset) - scale offset
//   q8_0, q4_0   the same, in groups of 32, out of llama.cpp's blocks
//   q4_1, q4_k   scales and minima in groups of 32, out of such blocks
#include <optional>

#include "hearth/ops/quantized_linear/weight.h"

namespace hearth::ops {

class GpuQuantized {
 public:
  // None for a format that is not one of those above, or whose groups MLX has
  // no product for.
  static std::optional<GpuQuantized> of(
      const QuantFormat& format,
      int cols,
      const QuantizedArrays& arrays
  );

  // The file's arrays.
  QuantizedArrays arrays() const;
  std::size_t nbytes() const;

  // x W^T in x's dtype. bfloat16 activations take scales and biases rounded to
  // bfloat16, which moves a weight by no more than rounding the largest of its
  // group would: MLX multiplies in the wider of both types, in float32 for
  // bfloat16 and float16, which is slow and has no gradient on CUDA.
  mx::array product(const mx::array& x, mx::StreamOrDevice s) const;

 private:
  struct Numbers {
    mx::array scales, biases;
  };

  QuantFormat format_;
  int group_;        // MLX's
  mx::array codes_;  // uint32
  Numbers stored_;   // of the file's type
  Numbers half_;     // bfloat16
  // What blocks begin with, where scales and biases do not tell it.
  std::optional<mx::array> heads_;

  GpuQuantized(
      const QuantFormat& format,
      int group,
      mx::array codes,
      const Numbers& stored,
      std::optional<mx::array> heads = {}
  );
  static std::optional<GpuQuantized> of_blocks(
      const QuantFormat& format,
      int cols,
      const mx::array& bytes
  );
  mx::array blocks() const;
};

}  // namespace hearth::ops
