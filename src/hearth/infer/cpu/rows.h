#pragma once
// What is done to whole rows between products: gathering, norms, the cap of
// logits. Each is for rows [begin, end), and different threads may have
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
  void* y;  // bf16 or float; where float it may be x
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
