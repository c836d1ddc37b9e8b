// AdamW with float32 and with 8-bit state, and Lion: rules whose whole step is
// one kernel.
#include "hearth/ops/leaf.h"
#include "hearth/optim/update_rule.h"

namespace hearth::optim {
namespace {

ops::AdamW hyper(const OptimConfig& c) {
  const auto [beta1, beta2] = c.betas_or_default();
  ops::AdamW h;
  h.beta1 = static_cast<float>(beta1);
  h.beta2 = static_cast<float>(beta2);
  h.eps = static_cast<float>(c.eps);
  return h;
}

std::size_t elements(const mx::Shape& shape) {
  std::size_t n = 1;
  for (const auto d : shape) n *= static_cast<std::size_t>(d);
  return n;
}

class AdamWRule : public RuleOf<ops::AdamW, ops::adamw_graph> {
 public:
  AdamWRule(const OptimConfig& c, const mx::Shape& shape)
      : RuleOf(hyper(c)),
        m_(ops::make_leaf(shape, mx::float32, state_zone())),
        v_(ops::make_leaf(shape, mx::float32, state_zone())) {}

  void step(
      const ops::Parameter& p,
      long step,
      double lr,
      double decay
  ) override {
    ops::adamw_step(numbers(lr, decay), step, p, m_, v_);
  }

 private:
  std::vector<Slot> slots() override { return {{"m", &m_}, {"v", &v_}}; }

  mx::array m_, v_;
};

class AdamW8Rule : public RuleOf<ops::AdamW, ops::adamw8_graph> {
 public:
  AdamW8Rule(const OptimConfig& c, const mx::Shape& shape)
      : RuleOf(hyper(c)),
        state_(ops::make_adamw8_state(elements(shape), state_zone())) {}

  void step(
      const ops::Parameter& p,
      long step,
      double lr,
      double decay
  ) override {
    ops::adamw8_step(numbers(lr, decay), step, p, state_);
  }

 private:
  std::vector<Slot> slots() override {
    return {
        {"m", &state_.m},
        {"v", &state_.v},
        {"m_scale", &state_.m_scale},
        {"v_scale", &state_.v_scale}
    };
  }

  ops::AdamW8State state_;
};

class LionRule : public RuleOf<ops::Lion, ops::lion_graph> {
 public:
  LionRule(const OptimConfig& c, const mx::Shape& shape)
      : RuleOf({}), m_(ops::make_leaf(shape, mx::float32, state_zone())) {
    const auto [beta1, beta2] = c.betas_or_default();
    hyper_.beta1 = static_cast<float>(beta1);
    hyper_.beta2 = static_cast<float>(beta2);
  }

  void step(const ops::Parameter& p, long, double lr, double decay) override {
    ops::lion_step(numbers(lr, decay), p, m_);
  }

 private:
  std::vector<Slot> slots() override { return {{"m", &m_}}; }

  mx::array m_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adamw(
    const OptimConfig& config,
    const mx::Shape& shape
) {
  return std::make_unique<AdamWRule>(config, shape);
}

std::unique_ptr<UpdateRule> make_adamw8(
    const OptimConfig& config,
    const mx::Shape& shape
) {
  return std::make_unique<AdamW8Rule>(config, shape);
}

std::unique_ptr<UpdateRule> make_lion(
    const OptimConfig& config,
    const mx::Shape& shape
) {
  return std::make_unique<LionRule>(config, shape);
}

}  // namespace hearth::optim
