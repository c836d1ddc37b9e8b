#include "hearth/kernels/math.h"
#include "hearth/kernels/simd/math_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

template <class In, class Out, class F>
HEARTH_INLINE void map(long n, const In* x, Out* y, F f) {
  each_vector(0, n, [&](long i, auto lanes) {
    store(y + i, f(load(x + i, lanes)), lanes);
  });
}

void exp_array(long n, const float* x, float* y) noexcept {
  map(n, x, y, [](F32 v) { return exp(v); });
}
void log_array(long n, const float* x, float* y) noexcept {
  map(n, x, y, [](F32 v) { return log(v); });
}
void tanh_array(long n, const float* x, float* y) noexcept {
  map(n, x, y, [](F32 v) { return tanh(v); });
}
void sigmoid_array(long n, const float* x, float* y) noexcept {
  map(n, x, y, [](F32 v) { return sigmoid(v); });
}
void erf_array(long n, const float* x, float* y) noexcept {
  map(n, x, y, [](F32 v) { return erf(v); });
}
template <class In, class Out>
void convert(long n, const In* x, Out* y) noexcept {
  map(n, x, y, [](F32 v) { return v; });
}

}  // namespace

const MathKernels math{
    .exp = exp_array,
    .log = log_array,
    .tanh = tanh_array,
    .sigmoid = sigmoid_array,
    .erf = erf_array,
    .float_to_bf16 = convert<float, Bf16>,
    .bf16_to_float = convert<Bf16, float>,
    .float_to_fp16 = convert<float, Fp16>,
    .fp16_to_float = convert<Fp16, float>,
};

}  // namespace hearth::kernels::HEARTH_ISA
