#pragma once
// Dense products on the thread pool: packing, products of a packed operand, and
// the gradient of a weight, whose two operands are both activations. Knows
// pointers alone; scratch comes from the op that calls.
#include <cstddef>
#include <span>

#include "hearth/base/thread_pool.h"
#include "hearth/kernels/gemm.h"

namespace hearth::ops {

// The family for operands of that type, bf16 or f32.
const kernels::GemmFamily& gemm_family(
    const kernels::Table& table,
    kernels::GemmScalar operand
);

void pack_gemm(
    ThreadPool& pool,
    const kernels::GemmFamily& family,
    const kernels::GemmPack& pack
);

// Scratch of every thread together, a multiple of 64.
std::size_t gemm_scratch_bytes(const kernels::GemmFamily& family, int threads);
void run_gemm(
    ThreadPool& pool,
    const kernels::GemmFamily& family,
    const kernels::GemmArgs& args,
    std::byte* scratch
);

// dw[n,k] (+)= scale * dy[tokens,n]^T x[tokens,k] in fp32, for every dy that
// goes with x, which is packed once.
struct WeightGradients {
  long tokens = 0, k = 0;
  const void* x = nullptr;
  long x_stride = 0;
  bool dy_in_blocks = false;  // as GemmArgs::a_in_blocks
  float scale = 1;
};
struct WeightGradientOf {
  const void* dy = nullptr;
  long n = 0, dy_stride = 0;
  float* dw = nullptr;
  bool accumulate = false;
};
std::size_t weight_gradient_scratch_bytes(
    const kernels::GemmFamily& family,
    long tokens,
    long k,
    int threads
);
void weight_gradients(
    ThreadPool& pool,
    const kernels::GemmFamily& family,
    const WeightGradients& w,
    std::span<const WeightGradientOf> parts,
    std::byte* scratch
);

// Whether a product [m, n] in the family's type is so large that it is stored
// past the caches.
bool product_goes_past_caches(
    long m,
    long n,
    const kernels::GemmFamily& family
);

}  // namespace hearth::ops
