#include "hearth/ops/optimizer_step/plain.h"

#include "hearth/base/error.h"
#include "hearth/ops/in_place_plain.h"
#include "hearth/ops/step_over_impl.h"

namespace hearth::ops {
namespace {

mx::array number(double x) {
  return mx::array(static_cast<float>(x));
}

// beta a + (1 - beta) b
mx::array mix(float beta, const mx::array& a, const mx::array& b) {
  return mx::add(
      mx::multiply(number(double{beta}), a),
      mx::multiply(number(1 - double{beta}), b)
  );
}

mx::array scaled_gradient(const char* name, const Parameter& p) {
  require_parameter(name, p);
  if (p.refresh) {
    throw UsageError(
        fmt::format("[ops.{}] a packed weight must be on a CPU", name)
    );
  }
  return mx::multiply(
      mx::astype(p.gradient, mx::float32), mx::array(p.gradient_scale)
  );
}

// w - lr (update + decay w)
mx::array moved(
    const mx::array& w,
    const mx::array& update,
    float lr,
    float decay
) {
  const auto pulled = mx::add(update, mx::multiply(number(double{decay}), w));
  return mx::subtract(w, mx::multiply(number(double{lr}), pulled));
}

}  // namespace

void plain_adamw_step(
    const AdamW& h,
    long step,
    const Parameter& p,
    mx::array& m,
    mx::array& v
) {
  const auto g = scaled_gradient("AdamW", p);
  require_array("AdamW", "the state", m, mx::float32, p.weight.size());
  require_array("AdamW", "the state", v, mx::float32, p.weight.size());
  const auto a = adamw_arguments(h, step);
  const auto m2 = mix(h.beta1, m, g), v2 = mix(h.beta2, v, mx::square(g));
  const auto down = mx::add(
      mx::sqrt(mx::multiply(v2, mx::array(a.correction2))),
      number(double{h.eps})
  );
  const auto update =
      mx::divide(mx::multiply(m2, mx::array(a.correction1)), down);
  const auto w = moved(p.weight, update, h.lr, h.decay);
  std::vector<mx::array> results{w, m2, v2};
  if (p.copy) results.push_back(mx::astype(w, mx::bfloat16));
  mx::async_eval(results);
  exchange_memory(p.weight, w);
  exchange_memory(m, m2);
  exchange_memory(v, v2);
  if (p.copy) exchange_memory(*p.copy, results.back());
}

void plain_lion_step(const Lion& h, const Parameter& p, mx::array& m) {
  const auto g = scaled_gradient("Lion", p);
  require_array("Lion", "the state", m, mx::float32, p.weight.size());
  const auto w = moved(p.weight, mx::sign(mix(h.beta1, m, g)), h.lr, h.decay);
  const auto m2 = mix(h.beta2, m, g);
  std::vector<mx::array> results{w, m2};
  if (p.copy) results.push_back(mx::astype(w, mx::bfloat16));
  mx::async_eval(results);
  exchange_memory(p.weight, w);
  exchange_memory(m, m2);
  if (p.copy) exchange_memory(*p.copy, results.back());
}

}  // namespace hearth::ops
