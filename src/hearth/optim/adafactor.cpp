// Adafactor as an update rule.
#include "hearth/ops/adafactor_step/gpu.h"
#include "hearth/optim/optimizer_kind.h"

namespace hearth::optim {
namespace {

class AdafactorRule : public RuleOf<ops::Adafactor, ops::adafactor_graph> {
 public:
  AdafactorRule(const OptimConfig& c, RuleState state)
      : RuleOf({}, std::move(state)) {
    hyper_.decay_rate = static_cast<float>(-c.adafactor.decay_rate);
    hyper_.clip = static_cast<float>(c.adafactor.clip);
    hyper_.beta1 = static_cast<float>(c.adafactor.momentum);
    hyper_.scale_by_size = c.adafactor.scale_by_size;
  }

  void step(
      const ops::Parameter& p,
      long step,
      double lr,
      double decay
  ) override {
    ops::AdafactorState own{array(0), array(1), {}};
    if (state().size() > 2) own.m = array(2);
    ops::adafactor_step(numbers(lr, decay), step, p, own);
  }
};

ops::StateArrays means(const OptimConfig& c, const mx::Shape& shape) {
  return ops::adafactor_state(shape, c.adafactor.momentum != 0);
}

}  // namespace

OptimizerKind adafactor_kind() {
  return {
      .name = "adafactor", .state = means, .make = make_rule<AdafactorRule>
  };
}

}  // namespace hearth::optim
