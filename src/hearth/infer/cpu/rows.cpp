#include "hearth/infer/cpu/rows.h"

namespace hearth::infer {
namespace {

using kernels::Bf16;

template <class Y>
void norm_to(
    const kernels::NormKernels::Both<float, Y>& kernels,
    const RowNorm& n,
    long begin,
    long end
) {
  const bool centred = n.config.kind == nn::NormKind::layer;
  const auto forward = centred ? kernels.layer.forward : kernels.rms.forward;
  forward(
      {.dim = n.dim,
       .eps = n.config.eps,
       .x = n.x,
       .r = nullptr,
       .w = n.weights.weight,
       .b = n.weights.bias,
       .h = nullptr,
       .y = static_cast<Y*>(n.y)},
      begin, end
  );
}

}  // namespace

void gather_rows(
    const kernels::Table& kernels,
    const CpuTable& table,
    long dim,
    const std::int32_t* ids,
    float* y,
    long begin,
    long end
) noexcept {
  const auto gather = [&](const auto& functions, const auto* rows) {
    functions.gather(table.count, dim, ids, rows, y, begin, end);
  };
  if (table.bf16) {
    gather(kernels.embedding->bf16_f32, static_cast<const Bf16*>(table.rows));
  } else {
    gather(kernels.embedding->f32_f32, static_cast<const float*>(table.rows));
  }
}

void norm_rows(
    const kernels::Table& kernels,
    const RowNorm& norm,
    long begin,
    long end
) noexcept {
  if (norm.bf16) {
    norm_to(kernels.norm->mixed, norm, begin, end);
  } else {
    norm_to(kernels.norm->f32, norm, begin, end);
  }
}

void cap_rows(
    const kernels::Table& kernels,
    float cap,
    const RowColumns& x,
    long begin,
    long end
) noexcept {
  const long n = x.end - x.begin;
  constexpr auto kTanh = kernels::Activation::tanh;
  for (long r = begin; r < end && n > 0; ++r) {
    float* row = x.data + r * x.stride + x.begin;
    kernels.arithmetic->scale_f32(n, 1 / cap, row, row);
    kernels.gate->of(kTanh, row)
        .forward(
            {.dim = n,
             .gate = row,
             .gate_stride = n,
             .value = nullptr,
             .value_stride = 0,
             .y = row,
             .y_stride = n,
             .beta = 1,
             .alpha = nullptr,
             .tanh_value = false},
            0, 1
        );
    kernels.arithmetic->scale_f32(n, cap, row, row);
  }
}

}  // namespace hearth::infer
