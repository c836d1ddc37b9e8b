// Muon: the running sum of gradients, made orthogonal, is the update.
#include <algorithm>
#include <cmath>

#include "hearth/nn/parameter_set.h"
#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/linear/op.h"
#include "hearth/optim/optimizer_kind.h"

namespace hearth::optim {
namespace {

// a b^T through our linear layer.
mx::array product(const mx::array& a, const mx::array& b, mx::Dtype compute) {
  const auto s = mx::default_stream(mx::Device::cpu);
  if (compute == mx::float32) return ops::linear(a, b, {}, nullptr, s);
  const auto y = ops::linear(
      ops::cast(a, compute, s), ops::cast(b, compute, s), {}, nullptr, s
  );
  return ops::cast(y, mx::float32, s);
}

class MuonRule : public RuleOf<ops::Muon, ops::muon_graph> {
 public:
  MuonRule(const OptimConfig& c, RuleState state)
      : RuleOf(hyper(c.muon), std::move(state)) {}

  void step(const ops::Parameter& p, long, double lr, double decay) override {
    if (!ops::on_cpu({})) return step_on_gpu(p, lr, decay);
    mx::array& m = array(0);
    auto update = ops::make_leaf(m.shape(), mx::float32, state_zone());
    ops::momentum_step(
        hyper_.momentum, hyper_.nesterov, p.gradient, p.gradient_scale, m,
        update
    );
    auto direction = ops::orthogonalize(
        update, hyper_.steps,
        [this](const mx::array& a, const mx::array& b) {
          return product(a, b, hyper_.compute);
        },
        mx::default_stream(mx::Device::cpu)
    );
    direction.eval();
    // An orthogonal n x k matrix has elements of the size 1 / sqrt(max(n, k)).
    const double size = std::sqrt(std::max(m.shape(0), m.shape(1)));
    apply_update(
        p, direction, static_cast<float>(1 - lr * decay),
        static_cast<float>(-lr * double{hyper_.rms} * size)
    );
  }

 private:
  static ops::Muon hyper(const MuonConfig& config) {
    return {
        .momentum = static_cast<float>(config.momentum),
        .nesterov = config.nesterov,
        .steps = static_cast<int>(config.steps),
        .rms = static_cast<float>(config.rms),
        .compute = config.precision == "fp32" ? mx::float32 : mx::bfloat16
    };
  }

  void step_on_gpu(const ops::Parameter& p, double lr, double decay) {
    const auto scalars = ops::step_scalars(
        {.learning_rate = lr, .gradient_scale = double{p.gradient_scale}}
    );
    const ops::Arrays before{p.weight, array(0)};
    ops::run_in_place(
        "Muon", p, before, step_graph({before, p.gradient, scalars}, decay)
    );
  }
};

bool takes(const OptimConfig& c, const nn::WeightSpec& p) {
  return p.shape.size() == 2 &&
         std::ranges::none_of(c.muon.exclude, [&](const std::string& pattern) {
           return nn::matches(pattern, p.name);
         });
}

// For n x k: five matrices of the weight's size and five of the smaller side's
// square, all float32, which the iteration makes and drops.
std::size_t workspace(const mx::Shape& shape) {
  const auto n = static_cast<std::size_t>(shape.at(0));
  const auto k = static_cast<std::size_t>(shape.at(1));
  const std::size_t least = std::min(n, k);
  return 5 * sizeof(float) * (n * k + least * least);
}

}  // namespace

OptimizerKind muon_kind() {
  return {
      .name = "muon",
      .smaller = "adamw8bit",
      .takes = takes,
      .state = one_moment,
      .workspace = workspace,
      .make = make_rule<MuonRule>
  };
}

}  // namespace hearth::optim
