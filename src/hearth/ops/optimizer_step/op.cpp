#include "hearth/ops/optimizer_step/op.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/optimizer_step/plain.h"
#include "hearth/ops/step_over_impl.h"

namespace hearth::ops {
namespace {

void require_state(const char* where, const mx::array& a, const Parameter& p) {
  require_array(where, "the state", a, mx::float32, p.weight.size());
}

}  // namespace

void adamw_step(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    mx::array& m,
    mx::array& v
) {
  if (!on_cpu({})) return plain_adamw_step(hyper, step, p, m, v);
  require_state("AdamW", m, p);
  require_state("AdamW", v, p);
  const auto a = adamw_arguments(hyper, step);
  float *ms = m.data<float>(), *vs = v.data<float>();
  step_over("AdamW", p, [&](auto& f, auto& args, long begin, long end) {
    f.adamw(a, args, ms, vs, begin, end);
  });
}

AdamW8State make_adamw8_state(std::size_t elements, MemoryZone zone) {
  const int n = static_cast<int>(elements);
  const int blocks = static_cast<int>(
      (elements + kernels::kStateBlock - 1) / kernels::kStateBlock
  );
  return {
      make_leaf({n}, mx::int8, zone), make_leaf({n}, mx::uint8, zone),
      make_leaf({blocks}, mx::float32, zone),
      make_leaf({blocks}, mx::float32, zone)
  };
}

void adamw8_step(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    AdamW8State& s
) {
  const std::size_t n = p.weight.size();
  const std::size_t blocks =
      (n + kernels::kStateBlock - 1) / kernels::kStateBlock;
  require_array("AdamW8", "m", s.m, mx::int8, n);
  require_array("AdamW8", "v", s.v, mx::uint8, n);
  require_array("AdamW8", "m's scales", s.m_scale, mx::float32, blocks);
  require_array("AdamW8", "v's scales", s.v_scale, mx::float32, blocks);
  const auto a = adamw_arguments(hyper, step);
  const kernels::State8 state{
      s.m.data<std::int8_t>(), s.v.data<std::uint8_t>(),
      s.m_scale.data<float>(), s.v_scale.data<float>()
  };
  step_over("AdamW8", p, [&](auto& f, auto& args, long begin, long end) {
    f.adamw8(a, args, state, begin, end);
  });
}

void lion_step(const Lion& h, const Parameter& p, mx::array& m) {
  if (!on_cpu({})) return plain_lion_step(h, p, m);
  require_state("Lion", m, p);
  const kernels::LionArgs a{h.lr, h.beta1, h.beta2, h.decay};
  float* ms = m.data<float>();
  step_over("Lion", p, [&](auto& f, auto& args, long begin, long end) {
    f.lion(a, args, ms, begin, end);
  });
}

void momentum_step(
    float mu,
    bool nesterov,
    const mx::array& gradient,
    float gradient_scale,
    mx::array& m,
    mx::array& update
) {
  // The update takes the weight's place: both are float32 of that size.
  const Parameter p{.weight = update, .gradient = gradient};
  require_state("Momentum", m, p);
  float* ms = m.data<float>();
  step_over("Momentum", p, [&](auto& f, auto& args, long begin, long end) {
    f.momentum(
        mu, nesterov, gradient_scale, args.grad, ms, args.weight, begin, end
    );
  });
}

mx::array orthogonalize(
    const mx::array& x,
    int steps,
    const std::function<mx::array(const mx::array&, const mx::array&)>& product,
    mx::StreamOrDevice s
) {
  if (x.ndim() != 2 || x.dtype() != mx::float32) {
    throw UsageError(
        fmt::format(
            "[ops.orthogonalize] x must be a float32 matrix, got {} dimensions",
            x.ndim()
        )
    );
  }
  // Coefficients that lift small singular values fastest and leave all of
  // them within about [0.7, 1.2].
  constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
  const bool tall = x.shape(0) > x.shape(1);
  auto y = tall ? dense(mx::transpose(x, s), s) : x;
  const auto norm = mx::sqrt(mx::sum(mx::square(y, s), s), s);
  y = mx::divide(y, mx::add(norm, mx::array(1e-7f), s), s);
  for (int i = 0; i < steps; ++i) {
    // a is its own transpose, and so is b.
    const auto a = product(y, y);
    const auto b = ops::add(
        scale(a, mx::array(kB), s), scale(product(a, a), mx::array(kC), s), s
    );
    y = ops::add(
        scale(y, mx::array(kA), s), product(b, dense(mx::transpose(y, s), s)), s
    );
  }
  return tall ? dense(mx::transpose(y, s), s) : y;
}

}  // namespace hearth::ops
