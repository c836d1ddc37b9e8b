// One parameter's step on a GPU, outside of a compiled step: the graph of gpu.h
// is run and its results are put where the state was.
#include "hearth/ops/arithmetic/gpu_in_place.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/optimizer_step/faces_impl.h"
#include "hearth/ops/optimizer_step/gpu.h"
#include "hearth/ops/step_over_impl.h"

namespace hearth::ops {
namespace {

template <class Hyper>
StepScalars scalars_of(const Hyper& h, long step, const Parameter& p) {
  return step_scalars(
      {.learning_rate = double{h.lr},
       .gradient_scale = double{p.gradient_scale},
       .beta1 = double{h.beta1},
       .beta2 = double{h.beta2},
       .step = step}
  );
}

}  // namespace

void run_in_place(
    const char* name,
    const Parameter& p,
    const Arrays& before,
    const Arrays& after
) {
  require_parameter(name, p);
  if (p.refresh) {
    throw UsageError(
        fmt::format("[ops.{}] a packed weight must be on a CPU", name)
    );
  }
  Arrays results = after;
  if (p.copy) results.push_back(mx::astype(after[0], mx::bfloat16));
  mx::async_eval(results);
  for (std::size_t i = 0; i < before.size(); ++i) {
    exchange_memory(before[i], results[i]);
  }
  if (p.copy) exchange_memory(*p.copy, results.back());
}

void adamw_step_gpu(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    mx::array& m,
    mx::array& v
) {
  const Arrays before{p.weight, m, v};
  run_in_place(
      "AdamW", p, before,
      adamw_graph(hyper, {before, p.gradient, scalars_of(hyper, step, p)})
  );
}

void adamw8_step_gpu(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    AdamW8State& s
) {
  const Arrays before{p.weight, s.m, s.v, s.m_scale, s.v_scale};
  run_in_place(
      "AdamW8", p, before,
      adamw8_graph(hyper, {before, p.gradient, scalars_of(hyper, step, p)})
  );
}

void lion_step_gpu(const Lion& h, const Parameter& p, mx::array& m) {
  const Arrays before{p.weight, m};
  run_in_place(
      "Lion", p, before,
      lion_graph(h, {before, p.gradient, scalars_of(h, 1, p)})
  );
}

void momentum_step_gpu(
    float mu,
    bool nesterov,
    const mx::array& gradient,
    float gradient_scale,
    mx::array& m,
    mx::array& update
) {
  const Parameter p{.weight = update, .gradient = gradient};
  run_in_place(
      "Momentum", p, {update, m},
      momentum_graph(mu, nesterov, m, gradient, mx::array(gradient_scale))
  );
}

}  // namespace hearth::ops
