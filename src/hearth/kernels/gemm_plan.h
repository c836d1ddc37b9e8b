#pragma once
// How a product is shared out among threads: a grid of rectangles of C. Pure
// arithmetic; the threads themselves are the caller's.
#include "hearth/kernels/gemm.h"

namespace hearth::kernels {

struct GemmGrid {
  int rows = 1, columns = 1;
};

// The grid of `threads` rectangles whose largest is smallest, counted in the
// family's tiles. Within 3 % the one with more parts along rows: then packed
// operands are shared and each part of A is prepared once.
GemmGrid gemm_grid(const GemmFamily& family, long m, long n, int threads);

struct GemmPart {
  GemmRange rows, columns;
};
GemmPart gemm_part(
    const GemmFamily& family,
    long m,
    long n,
    GemmGrid grid,
    int worker
);

}  // namespace hearth::kernels
