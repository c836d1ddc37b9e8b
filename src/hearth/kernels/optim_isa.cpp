#include "hearth/kernels/optim.h"
#include "hearth/kernels/simd/vec_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// A step's constants, spread over lanes once a call.
struct Adam {
  F32 scale, beta1, beta2, rest1, rest2, correction1, correction2, eps;
  F32 lr, decay;
  template <class G>
  HEARTH_INLINE Adam(const AdamWArgs& a, const StepArgs<G>& s)
      : scale(splat(s.grad_scale)),
        beta1(splat(a.beta1)),
        beta2(splat(a.beta2)),
        rest1(splat(1 - a.beta1)),
        rest2(splat(1 - a.beta2)),
        correction1(splat(a.correction1)),
        correction2(splat(a.correction2)),
        eps(splat(a.eps)),
        lr(splat(a.lr)),
        decay(splat(a.decay)) {}

  // The new weight; m and v are updated.
  HEARTH_INLINE F32 step(F32 g, F32 p, F32& m, F32& v) const {
    g = g * scale;
    m = fma(beta1, m, rest1 * g);
    v = fma(beta2, v, rest2 * (g * g));
    const F32 down = sqrt(v * correction2) + eps;
    const F32 update = fma(decay, p, m * correction1 / down);
    return fnma(lr, update, p);
  }
};

template <class G, class Lanes>
HEARTH_INLINE void put(const StepArgs<G>& s, long i, F32 p, Lanes lanes) {
  store(s.weight + i, p, lanes);
  if (s.copy != nullptr) store(s.copy + i, p, lanes);
}

template <class G>
void adamw(
    const AdamWArgs& a,
    const StepArgs<G>& s,
    float* ms,
    float* vs,
    long begin,
    long end
) noexcept {
  const Adam adam(a, s);
  each_vector(begin, end, [&](long i, auto lanes) {
    F32 m = load(ms + i, lanes), v = load(vs + i, lanes);
    const F32 p =
        adam.step(load(s.grad + i, lanes), load(s.weight + i, lanes), m, v);
    store(ms + i, m, lanes);
    store(vs + i, v, lanes);
    put(s, i, p, lanes);
  });
}

// The largest value of a block. NaN is left out; it has no code either.
HEARTH_INLINE float block_max(long n, const float* x) {
  F32 top = zero();
  each_vector(0, n, [&](long i, auto lanes) {
    top = max(abs(load(x + i, lanes)), top);
  });
  return reduce_max(top);
}

// Codes are bytes, which may alias anything: without __restrict the compiler
// does not turn these loops into vectors.
void encode(
    long n,
    const float* __restrict m,
    const float* __restrict v,
    const State8& s,
    long at
) {
  const long block = at / kStateBlock;
  const float m_top = block_max(n, m), v_top = block_max(n, v);
  const float m_down = m_top > 0 ? 127.0f * 127.0f / m_top : 0;
  const float v_down = v_top > 0 ? 1 / v_top : 0;
  s.m_scale[block] = m_top, s.v_scale[block] = v_top;
  std::int8_t* __restrict m_code = s.m + at;
  for (long i = 0; i < n; ++i) {
    const float root = __builtin_sqrtf(__builtin_fabsf(m[i]) * m_down);
    m_code[i] =
        static_cast<std::int8_t>(__builtin_copysignf(root + 0.5f, m[i]));
  }
  std::uint8_t* __restrict v_code = s.v + at;
  for (long i = 0; i < n; ++i) {
    const float root = __builtin_sqrtf(__builtin_sqrtf(v[i] * v_down));
    // Never 0 for a v above 0: it is divided by.
    const float code = root * 255.0f + 0.5f, least = v[i] > 0 ? 1.0f : 0.0f;
    v_code[i] = static_cast<std::uint8_t>(code > least ? code : least);
  }
}

void decode(
    long n,
    float* __restrict m,
    float* __restrict v,
    const State8& s,
    long at
) {
  const long block = at / kStateBlock;
  const float m_scale = s.m_scale[block] / (127.0f * 127.0f);
  const float v_scale = s.v_scale[block];
  const std::int8_t* __restrict m_code = s.m + at;
  for (long i = 0; i < n; ++i) {
    const float f = m_code[i];
    m[i] = m_scale * f * __builtin_fabsf(f);
  }
  const std::uint8_t* __restrict v_code = s.v + at;
  for (long i = 0; i < n; ++i) {
    const float f = static_cast<float>(v_code[i]) * (1 / 255.0f), f2 = f * f;
    v[i] = v_scale * f2 * f2;
  }
}

template <class G>
void adamw8(
    const AdamWArgs& a,
    const StepArgs<G>& s,
    const State8& state,
    long begin,
    long end
) noexcept {
  const Adam adam(a, s);
  alignas(64) float ms[kStateBlock], vs[kStateBlock];
  for (long at = begin; at < end; at += kStateBlock) {
    const long n = end - at < kStateBlock ? end - at : kStateBlock;
    decode(n, ms, vs, state, at);
    each_vector(0, n, [&](long i, auto lanes) {
      F32 m = load(ms + i, lanes), v = load(vs + i, lanes);
      const F32 p = adam.step(
          load(s.grad + at + i, lanes), load(s.weight + at + i, lanes), m, v
      );
      store(ms + i, m, lanes);
      store(vs + i, v, lanes);
      put(s, at + i, p, lanes);
    });
    encode(n, ms, vs, state, at);
  }
}

template <class G>
void lion(
    const LionArgs& a,
    const StepArgs<G>& s,
    float* ms,
    long begin,
    long end
) noexcept {
  const F32 scale_g = splat(s.grad_scale), lr = splat(a.lr);
  const F32 beta1 = splat(a.beta1), rest1 = splat(1 - a.beta1);
  const F32 beta2 = splat(a.beta2), rest2 = splat(1 - a.beta2);
  const F32 decay = splat(a.decay), one = splat(1.0f);
  each_vector(begin, end, [&](long i, auto lanes) {
    const F32 g = load(s.grad + i, lanes) * scale_g, m = load(ms + i, lanes);
    const F32 p = load(s.weight + i, lanes);
    const F32 c = fma(beta1, m, rest1 * g);
    // The sign of 0 is 0 and that of NaN is NaN.
    const F32 sign = select(zero() < abs(c), copysign(one, c), c);
    store(ms + i, fma(beta2, m, rest2 * g), lanes);
    put(s, i, fnma(lr, fma(decay, p, sign), p), lanes);
  });
}

template <class G>
void momentum(
    float mu,
    bool nesterov,
    float grad_scale,
    const G* grad,
    float* ms,
    float* update,
    long begin,
    long end
) noexcept {
  const F32 keep = splat(mu), factor = splat(grad_scale);
  const F32 ahead = splat(nesterov ? mu : 1.0f);
  const F32 share = splat(nesterov ? 1.0f : 0.0f);
  each_vector(begin, end, [&](long i, auto lanes) {
    const F32 g = load(grad + i, lanes) * factor;
    const F32 m = fma(keep, load(ms + i, lanes), g);
    store(ms + i, m, lanes);
    store(update + i, fma(ahead, m, share * g), lanes);
  });
}

template <class G>
constexpr OptimFunctions<G> functions() {
  return {adamw<G>, adamw8<G>, lion<G>, momentum<G>};
}

}  // namespace

const OptimKernels optim{.f32 = functions<float>(), .bf16 = functions<Bf16>()};

}  // namespace hearth::kernels::HEARTH_ISA
