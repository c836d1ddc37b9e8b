#include "hearth/ops/packed_weight.h"

#include "hearth/ops/gemm.h"

namespace hearth::ops {

PackedWeight::PackedWeight(
    long n,
    long k,
    kernels::GemmScalar operand,
    MemoryZone zone,
    const kernels::Table& table
)
    : n_(n),
      k_(k),
      family_(gemm_family(table, operand)),
      forward_(zone, family_.packed_bytes(n, k)),
      backward_(zone, family_.packed_bytes(k, n)) {}

void PackedWeight::refresh(
    const void* weight,
    kernels::GemmScalar type,
    kernels::GemmRange rows
) noexcept {
  kernels::GemmPack pack{
      .source = weight,
      .type = type,
      .stride = k_,
      .by_column = true,
      .n = n_,
      .k = k_,
      .packed = forward_.data()
  };
  family_.pack(pack, rows, {0, k_});
  pack.by_column = false;
  pack.n = k_;
  pack.k = n_;
  pack.packed = backward_.data();
  family_.pack(pack, {0, k_}, rows);
}

}  // namespace hearth::ops
