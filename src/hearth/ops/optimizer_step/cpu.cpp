// Optimiser steps over our kernels, in place.
#include "hearth/ops/optimizer_step/faces_impl.h"
#include "hearth/ops/step_over_impl.h"

namespace hearth::ops {

void adamw_step_cpu(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    mx::array& m,
    mx::array& v
) {
  const auto a = adamw_arguments(hyper, step);
  float *ms = m.data<float>(), *vs = v.data<float>();
  step_over("AdamW", p, [&](auto& f, auto& args, long begin, long end) {
    f.adamw(a, args, ms, vs, begin, end);
  });
}

void adamw8_step_cpu(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    AdamW8State& s
) {
  const auto a = adamw_arguments(hyper, step);
  const kernels::State8 state{
      s.m.data<std::int8_t>(), s.v.data<std::uint8_t>(),
      s.m_scale.data<float>(), s.v_scale.data<float>()
  };
  step_over("AdamW8", p, [&](auto& f, auto& args, long begin, long end) {
    f.adamw8(a, args, state, begin, end);
  });
}

void lion_step_cpu(const Lion& h, const Parameter& p, mx::array& m) {
  const kernels::LionArgs a{h.lr, h.beta1, h.beta2, h.decay};
  float* ms = m.data<float>();
  step_over("Lion", p, [&](auto& f, auto& args, long begin, long end) {
    f.lion(a, args, ms, begin, end);
  });
}

void momentum_step_cpu(
    float mu,
    bool nesterov,
    const mx::array& gradient,
    float gradient_scale,
    mx::array& m,
    mx::array& update
) {
  // The update takes the weight's place: both are float32 of that size.
  const Parameter p{.weight = update, .gradient = gradient};
  float* ms = m.data<float>();
  step_over("Momentum", p, [&](auto& f, auto& args, long begin, long end) {
    f.momentum(
        mu, nesterov, gradient_scale, args.grad, ms, args.weight, begin, end
    );
  });
}

}  // namespace hearth::ops
