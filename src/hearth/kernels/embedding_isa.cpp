#include "hearth/kernels/embedding.h"
#include "hearth/kernels/simd/vec_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

template <class W, class Y>
void gather(
    long rows,
    long dim,
    const int* ids,
    const W* table,
    Y* y,
    long begin,
    long end
) noexcept {
  for (long t = begin; t < end; ++t) {
    Y* out = y + t * dim;
    const long id = ids[t];
    if (id < 0 || id >= rows) {
      each_vector(0, dim, [&](long i, auto lanes) {
        store(out + i, splat(__builtin_nanf("")), lanes);
      });
      continue;
    }
    const W* row = table + id * dim;
    each_vector(0, dim, [&](long i, auto lanes) {
      store(out + i, load(row + i, lanes), lanes);
    });
  }
}

template <class Y>
void scatter_add(
    long rows,
    long dim,
    const int* ids,
    const Y* dy,
    float* grad,
    long count,
    int part,
    int parts
) noexcept {
  for (long t = 0; t < count; ++t) {
    const long id = ids[t];
    if (id < 0 || id >= rows || id % parts != part) continue;
    float* row = grad + id * dim;
    const Y* d = dy + t * dim;
    each_vector(0, dim, [&](long i, auto lanes) {
      store(row + i, load(row + i, lanes) + load(d + i, lanes), lanes);
    });
  }
}

}  // namespace

const EmbeddingKernels embedding{
    .f32_f32 = {gather<float, float>},
    .f32_bf16 = {gather<float, Bf16>},
    .bf16_f32 = {gather<Bf16, float>},
    .bf16_bf16 = {gather<Bf16, Bf16>},
    .grad_f32 = {scatter_add<float>},
    .grad_bf16 = {scatter_add<Bf16>},
};

}  // namespace hearth::kernels::HEARTH_ISA
