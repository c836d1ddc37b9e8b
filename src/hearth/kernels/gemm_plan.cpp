#include "hearth/kernels/gemm_plan.h"

#include <algorithm>

#include "hearth/base/thread_pool.h"

namespace hearth::kernels {
namespace {

long tiles(long size, long tile) {
  return (size + tile - 1) / tile;
}

GemmRange part(long size, long tile, int index, int count) {
  const Range r = partition(
      static_cast<std::size_t>(size), static_cast<std::size_t>(tile), index,
      count
  );
  return {static_cast<long>(r.begin), static_cast<long>(r.end)};
}

}  // namespace

GemmGrid gemm_grid(const GemmFamily& family, long m, long n, int threads) {
  GemmGrid best{1, threads};
  long smallest = -1;
  for (int columns = 1; columns <= threads; ++columns) {
    if (threads % columns != 0) continue;
    const int rows = threads / columns;
    const long largest = tiles(tiles(m, family.rows), rows) *
                         tiles(tiles(n, family.columns), columns);
    if (smallest >= 0 && largest * 33 >= smallest * 32) continue;
    smallest = largest;
    best = {rows, columns};
  }
  return best;
}

GemmPart gemm_part(
    const GemmFamily& family,
    long m,
    long n,
    GemmGrid grid,
    int worker
) {
  return {
      part(m, family.rows, worker % grid.rows, grid.rows),
      part(n, family.columns, worker / grid.rows, grid.columns)
  };
}

}  // namespace hearth::kernels
