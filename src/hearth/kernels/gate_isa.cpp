// Gates, forward and backward, for one instruction set.
#include "hearth/kernels/activation_impl.h"
#include "hearth/kernels/gate.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

template <Activation kAct, class T>
void forward(const GateArgs<T>& a, long begin, long end) noexcept {
  T* const tag = nullptr;
  const F32 beta = splat(a.beta);
  const float share = a.alpha != nullptr ? *a.alpha : 1.0f;
  const F32 alpha = splat(share), rest = splat(1.0f - share);
  const PastCaches to(a.past_caches, a.y, a.y_stride);
  for (long t = begin; t < end; ++t) {
    const T* gate = a.gate + t * a.gate_stride;
    T* y = a.y + t * a.y_stride;
    if (a.value == nullptr) {
      each_vector(0, a.dim, [&](long i, auto lanes) {
        to.store(
            y + i, Act<kAct>::value(tag, load(gate + i, lanes), beta), lanes
        );
      });
      continue;
    }
    const T* value = a.value + t * a.value_stride;
    if (a.alpha == nullptr && !a.tanh_value) {
      each_vector(0, a.dim, [&](long i, auto lanes) {
        const F32 act = Act<kAct>::value(tag, load(gate + i, lanes), beta);
        to.store(y + i, act * load(value + i, lanes), lanes);
      });
      continue;
    }
    each_vector(0, a.dim, [&](long i, auto lanes) {
      const F32 act = Act<kAct>::value(tag, load(gate + i, lanes), beta);
      F32 v = load(value + i, lanes);
      if (a.tanh_value) v = tanh(v);
      to.store(y + i, v * fma(alpha, act, rest), lanes);
    });
  }
}

// One row of the gated form; returns the row's share of alpha's gradient.
template <Activation kAct, class T>
HEARTH_INLINE float gated_row(
    const GateGradArgs<T>& g,
    const PastCaches& to,
    const PastCaches& value_out,
    long t
) {
  T* const tag = nullptr;
  const GateArgs<T>& a = g.forward;
  const float share = a.alpha != nullptr ? *a.alpha : 1.0f;
  const F32 alpha = splat(share), rest = splat(1.0f - share);
  const F32 beta = splat(a.beta);
  const T* gate = a.gate + t * a.gate_stride;
  const T* value = a.value + t * a.value_stride;
  const T* dy = g.dy + t * g.dy_stride;
  T* dgate = g.dgate + t * g.dgate_stride;
  T* dvalue = g.dvalue + t * g.dvalue_stride;
  F32 dalpha = zero();
  each_vector(0, a.dim, [&](long i, auto lanes) {
    const auto act = Act<kAct>::both(tag, load(gate + i, lanes), beta);
    F32 v = load(value + i, lanes);
    if (a.tanh_value) v = tanh(v);
    const F32 d = load(dy + i, lanes), dv = d * v;
    to.store(dgate + i, dv * alpha * act.slope, lanes);
    F32 to_value = d * fma(alpha, act.value, rest);
    if (a.tanh_value) to_value = to_value * fnma(v, v, one());
    value_out.store(dvalue + i, to_value, lanes);
    if (a.alpha != nullptr) {
      dalpha += only(dv * (act.value - one()), lanes);
    }
  });
  return reduce_add(dalpha);
}

template <Activation kAct, class T>
void backward(
    const GateGradArgs<T>& g,
    long begin,
    long end,
    float* dalpha
) noexcept {
  T* const tag = nullptr;
  const GateArgs<T>& a = g.forward;
  const F32 beta = splat(a.beta);
  const PastCaches to(a.past_caches, g.dgate, g.dgate_stride);
  const PastCaches value_out(
      a.past_caches && g.dvalue != nullptr, g.dvalue, g.dvalue_stride
  );
  double sum = 0;
  for (long t = begin; t < end; ++t) {
    if (a.value != nullptr) {
      sum += static_cast<double>(gated_row<kAct>(g, to, value_out, t));
      continue;
    }
    const T* gate = a.gate + t * a.gate_stride;
    const T* dy = g.dy + t * g.dy_stride;
    T* dgate = g.dgate + t * g.dgate_stride;
    each_vector(0, a.dim, [&](long i, auto lanes) {
      const auto act = Act<kAct>::both(tag, load(gate + i, lanes), beta);
      to.store(dgate + i, load(dy + i, lanes) * act.slope, lanes);
    });
  }
  if (dalpha != nullptr) *dalpha += static_cast<float>(sum);
}

template <Activation kAct, class T>
constexpr GateFunctions<T> functions() {
  return {forward<kAct, T>, backward<kAct, T>};
}

}  // namespace

#define HEARTH_EACH_ACTIVATION(T)                                              \
  functions<Activation::silu, T>(), functions<Activation::gelu, T>(),          \
      functions<Activation::gelu_tanh, T>(), functions<Activation::relu, T>(), \
      functions<Activation::sigmoid, T>(), functions<Activation::tanh, T>(),   \
      functions<Activation::mish, T>()

const GateKernels gate{
    .f32 = {HEARTH_EACH_ACTIVATION(float)},
    .bf16 = {HEARTH_EACH_ACTIVATION(Bf16)},
};

}  // namespace hearth::kernels::HEARTH_ISA
