#pragma once
// Rotary position embedding: pairs of elements of each head are rotated by an
// angle that depends on the token's position. Cosines and sines come from a
// table, rows of `half` cosines followed by `half` sines.
#include "hearth/kernels/scalar.h"

namespace hearth::kernels {

template <class T>
struct RopeArgs {
  long heads, head_dim;
  long half;         // pairs rotated; 2 * half <= head_dim, the rest is copied
  bool interleaved;  // pairs are (2i, 2i + 1), else (i, i + half)
  bool inverse;      // rotate back: the gradient
  const T* x;
  T* y;  // may be x
  const float* table;
  long table_rows;
  const int* positions;
  // Head `h` of token `t` starts at x + t * token_stride + h * head_stride.
  long token_stride, head_stride;
  bool past_caches = false;  // y is so large that it is stored past the caches
};

template <class T>
struct RopeFunctions {
  // Tokens [begin, end), whose positions are positions[begin] and so on. A
  // position outside the table gives NaN.
  void (*rotate)(const RopeArgs<T>&, long begin, long end) noexcept;
};

struct RopeKernels {
  RopeFunctions<float> f32;
  RopeFunctions<Bf16> bf16;
  const RopeFunctions<float>& of(float*) const { return f32; }
  const RopeFunctions<Bf16>& of(Bf16*) const { return bf16; }
};

}  // namespace hearth::kernels
