// Adafactor as an update rule.
#include "hearth/ops/adafactor_step/gpu.h"
#include "hearth/optim/update_rule.h"

namespace hearth::optim {
namespace {

class AdafactorRule : public RuleOf<ops::Adafactor, ops::adafactor_graph> {
 public:
  AdafactorRule(const OptimConfig& c, const mx::Shape& shape)
      : RuleOf({}),
        state_(
            ops::make_adafactor_state(
                shape,
                c.adafactor.momentum != 0,
                state_zone()
            )
        ) {
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
    ops::adafactor_step(numbers(lr, decay), step, p, state_);
  }

 private:
  std::vector<Slot> slots() override {
    std::vector<Slot> out = {
        {"rows", &state_.rows}, {"columns", &state_.columns}
    };
    if (state_.m) out.push_back({"m", &*state_.m});
    return out;
  }

  ops::AdafactorState state_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adafactor(
    const OptimConfig& config,
    const mx::Shape& shape
) {
  return std::make_unique<AdafactorRule>(config, shape);
}

}  // namespace hearth::optim
