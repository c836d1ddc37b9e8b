#pragma once
// Dense matrix products C[m,n] = A[m,k] B[k,n] with B packed beforehand into
// the order the instruction set reads it in. One family of functions per
// operand type; each works on a range of rows and columns of C, so a caller
// may split a product among threads as it likes: an element of C is summed in
// the same order whatever the split.
//
//   y  = x W^T    A = x                  B = W[n,k], by_column
//   dx = dy W     A = dy                 B = W[n,k], not by_column
//   dW = dy^T x   A = dy, a_transposed   B = x, not by_column
#include <cstddef>
#include <span>

#include "hearth/kernels/gate.h"
#include "hearth/kernels/scalar.h"

namespace hearth::kernels {

struct Table;

struct GemmRange {
  long begin = 0, end = 0;
};

enum class GemmScalar : unsigned char { f32, bf16, i8, i32 };

// Where B comes from. A bf16 family also packs from an fp32 source, rounding to
// nearest even.
struct GemmPack {
  const void* source = nullptr;
  GemmScalar type = GemmScalar::f32;
  long stride = 0;  // elements from one row of the source to the next
  // B[k,j] is source[j * stride + k]; otherwise it is source[k * stride + j].
  bool by_column = false;
  long n = 0, k = 0;
  void* packed = nullptr;  // 64-byte aligned, packed_bytes(n, k) long
};

// One more product of as many rows and columns, A[m,k] B[k,n].
struct GemmTerm {
  const void* a = nullptr;
  long a_stride = 0, k = 0;
  const void* packed = nullptr;
};
constexpr int kMaxGemmTerms = 7;

// C = scale * (A B + more) + bias + residual (+ C, when accumulate is set);
// then, where there is a gate, C = act(gate) C, while a block of rows is still
// in the cache.
struct GemmArgs {
  long m = 0, n = 0, k = 0;
  const void* a = nullptr;
  long a_stride = 0;
  // A[i,k] is a[k * a_stride + i]; otherwise it is a[i * a_stride + k]. The
  // int8 family takes only the latter.
  bool a_transposed = false;
  // What lies at `a` lies in blocks of 32 x 32, as tiles read them: block after
  // block along a row of blocks, in a block row after row. a_stride is a
  // multiple of 32, and the blocks at the end of a row are filled up with
  // zeros. Only for families whose `reads_blocks` is set.
  bool a_in_blocks = false;
  const void* packed = nullptr;
  void* c = nullptr;
  long c_stride = 0;
  GemmScalar c_type = GemmScalar::f32;  // f32 or bf16; i32 for int8
  // What follows is not for the int8 family, but for accumulate.
  bool accumulate = false;
  // Added in the same sums, for A as it is: neither transposed nor in blocks.
  std::span<const GemmTerm> more = {};
  float scale = 1.0f;
  const float* bias = nullptr;     // n values
  const void* residual = nullptr;  // of c_type; may be C itself
  long residual_stride = 0;
  const void* gate = nullptr;  // of c_type
  long gate_stride = 0;
  Activation act = Activation::silu;
  // C is so large that it may be stored past the caches.
  bool past_caches = false;
};

// Where row i and column k are in blocks of 32 x 32.
constexpr long block_place(long i, long k, long stride) {
  constexpr long kSide = 32;
  return i / kSide * kSide * stride + k / kSide * kSide * kSide +
         i % kSide * kSide + k % kSide;
}

struct GemmFamily {
  GemmScalar operand;
  // Column ranges begin at a multiple of `columns`; row ranges are fastest when
  // their height is a multiple of `rows`; packing along k goes by `depth`.
  int columns, rows, depth;
  bool reads_blocks;
  std::size_t scratch_bytes;  // per thread, 64-byte aligned
  std::size_t (*packed_bytes)(long n, long k) noexcept;
  // Packs a part of B: columns from a multiple of `columns`, depth from a
  // multiple of `depth`, each up to another multiple or to the end. So an
  // optimiser that has updated rows of W refreshes both orientations of just
  // those rows. The int8 family packs the whole depth at once.
  void (*pack)(const GemmPack&, GemmRange columns, GemmRange depth) noexcept;
  void (*run)(
      const GemmArgs&,
      GemmRange rows,
      GemmRange columns,
      void* scratch
  ) noexcept;
};

struct GemmKernels {
  GemmFamily bf16;          // by the processor's own bf16 products, if any
  GemmFamily bf16_widened;  // by fp32 products; packs as `bf16` does
  GemmFamily f32;
  GemmFamily i8;
};

// The faster of the two bf16 families of a table. Whether the processor's bf16
// products beat its fp32 ones is measured once, in some 50 microseconds: on
// some processors they run at twice the rate and on some at half.
const GemmFamily& bf16_gemm(const Table& table);

}  // namespace hearth::kernels
