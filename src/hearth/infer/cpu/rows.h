#pragma once
// Operations on whole rows between products: gathering, norms, the cap of
// logits. Each works on rows [begin, end), and different threads may take
// different rows.
#include <cstdint>

#include "hearth/infer/cpu/model.h"
#include "hearth/kernels/table.h"

namespace hearth::infer {

// y[r] = the table's row ids[r], as float.
void gather_rows(
    const kernels::Table& kernels,
    const CpuTable& table,
    long dim,
    const std::int32_t* ids,
    float* y,
    long begin,
    long end
) noexcept;

struct RowNorm {
  const nn::NormConfig& config;
  const CpuNorm& weights;
  long dim;
  const float* x;
  void* y;  // bf16 or float; as float it may be x itself
  bool bf16;
};
void norm_rows(
    const kernels::Table& kernels,
    const RowNorm& norm,
    long begin,
    long end
) noexcept;

// Columns of a matrix of float.
struct RowColumns {
  float* data;
  long stride, begin, end;
};
// x becomes cap tanh(x / cap).
void cap_rows(
    const kernels::Table& kernels,
    float cap,
    const RowColumns& x,
    long begin,
    long end
) noexcept;

}  // namespace hearth::infer
