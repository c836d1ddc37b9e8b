// Checks the states of an optimiser step and chooses the form that runs it.
#include "hearth/ops/leaf.h"
#include "hearth/ops/optimizer_step/faces_impl.h"
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
  require_state("AdamW", m, p);
  require_state("AdamW", v, p);
  if (!on_cpu({})) return adamw_step_gpu(hyper, step, p, m, v);
  adamw_step_cpu(hyper, step, p, m, v);
}

std::size_t StateArray::elements() const {
  std::size_t n = 1;
  for (const auto d : shape) n *= static_cast<std::size_t>(d);
  return n;
}

Arrays make_state(const StateArrays& described, MemoryZone zone) {
  Arrays out;
  for (const StateArray& a : described) {
    out.push_back(make_leaf(a.shape, a.dtype, zone));
  }
  return out;
}

StateArrays adamw8_state(std::size_t elements) {
  const int n = static_cast<int>(elements);
  const int blocks = static_cast<int>(
      (elements + kernels::kStateBlock - 1) / kernels::kStateBlock
  );
  return {
      {"m", {n}, mx::int8},
      {"v", {n}, mx::uint8},
      {"m_scale", {blocks}},
      {"v_scale", {blocks}}
  };
}

AdamW8State make_adamw8_state(std::size_t elements, MemoryZone zone) {
  const Arrays a = make_state(adamw8_state(elements), zone);
  return {a[0], a[1], a[2], a[3]};
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
  if (!on_cpu({})) return adamw8_step_gpu(hyper, step, p, s);
  adamw8_step_cpu(hyper, step, p, s);
}

void lion_step(const Lion& h, const Parameter& p, mx::array& m) {
  require_state("Lion", m, p);
  if (!on_cpu({})) return lion_step_gpu(h, p, m);
  lion_step_cpu(h, p, m);
}

void momentum_step(
    float mu,
    bool nesterov,
    const mx::array& gradient,
    float gradient_scale,
    mx::array& m,
    mx::array& update
) {
  require_array("Momentum", "the state", m, mx::float32, update.size());
  if (!on_cpu({}))
    return momentum_step_gpu(mu, nesterov, gradient, gradient_scale, m, update);
  momentum_step_cpu(mu, nesterov, gradient, gradient_scale, m, update);
}

}  // namespace hearth::ops
