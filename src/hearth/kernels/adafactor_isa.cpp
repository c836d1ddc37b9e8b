#include "hearth/kernels/adafactor.h"
#include "hearth/kernels/simd/vec_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

template <class G>
void squares(
    const FactoredGrad<G>& g,
    float eps,
    float* row_sums,
    float* column_sums,
    long begin,
    long end
) noexcept {
  const F32 factor = splat(g.scale), floor = splat(eps);
  for (long i = begin; i < end; ++i) {
    const G* row = g.grad + i * g.columns;
    F32 sum = zero();
    each_vector(0, g.columns, [&](long j, auto lanes) {
      const F32 x = load(row + j, lanes) * factor;
      const F32 square = fma(x, x, floor);
      sum += only(square, lanes);
      const F32 old = i == begin ? zero() : load(column_sums + j, lanes);
      store(column_sums + j, old + square, lanes);
    });
    row_sums[i] = reduce_add(sum);
  }
}

template <class G>
void sizes(
    const FactoredGrad<G>& g,
    const float* row_factor,
    const float* column_factor,
    float* row_sums,
    long begin,
    long end
) noexcept {
  for (long i = begin; i < end; ++i) {
    const G* row = g.grad + i * g.columns;
    const F32 factor = splat(g.scale * row_factor[i]);
    F32 sum = zero();
    each_vector(0, g.columns, [&](long j, auto lanes) {
      const F32 x =
          load(row + j, lanes) * (factor * load(column_factor + j, lanes));
      sum = fma(x, x, sum);
    });
    row_sums[i] = reduce_add(sum);
  }
}

template <class G>
void apply(
    const AdafactorArgs& a,
    const StepArgs<G>& s,
    long columns,
    const float* row_factor,
    const float* column_factor,
    float* ms,
    long begin,
    long end
) noexcept {
  const F32 lr = splat(a.lr * s.grad_scale), keep = splat(a.keep);
  const F32 beta = splat(a.beta1), rest = splat(1 - a.beta1);
  for (long at = begin; at < end;) {
    const long i = at / columns, first = i * columns;
    const long stop = first + columns < end ? first + columns : end;
    const F32 factor = lr * splat(row_factor[i]);
    const float* across = column_factor - first;
    each_vector(at, stop, [&](long j, auto lanes) {
      F32 u = load(s.grad + j, lanes) * (factor * load(across + j, lanes));
      if (ms != nullptr) {
        u = fma(beta, load(ms + j, lanes), rest * u);
        store(ms + j, u, lanes);
      }
      const F32 p = fma(keep, load(s.weight + j, lanes), neg(u));
      store(s.weight + j, p, lanes);
      if (s.copy != nullptr) store(s.copy + j, p, lanes);
    });
    at = stop;
  }
}

template <class G>
constexpr AdafactorFunctions<G> functions() {
  return {squares<G>, sizes<G>, apply<G>};
}

}  // namespace

const AdafactorKernels adafactor{
    .f32 = functions<float>(),
    .bf16 = functions<Bf16>()
};

}  // namespace hearth::kernels::HEARTH_ISA
