// AdamW with float32 and with 8-bit state, and Lion: rules whose whole step is
// one kernel.
#include "hearth/optim/optimizer_kind.h"

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

// Below this many elements 8-bit state saves nothing worth its error.
constexpr std::size_t kLeast8Bit = 4096;

class AdamWRule : public RuleOf<ops::AdamW, ops::adamw_graph> {
 public:
  AdamWRule(const OptimConfig& c, RuleState state)
      : RuleOf(hyper(c), std::move(state)) {}

  void step(
      const ops::Parameter& p,
      long step,
      double lr,
      double decay
  ) override {
    ops::adamw_step(numbers(lr, decay), step, p, array(0), array(1));
  }
};

class AdamW8Rule : public RuleOf<ops::AdamW, ops::adamw8_graph> {
 public:
  AdamW8Rule(const OptimConfig& c, RuleState state)
      : RuleOf(hyper(c), std::move(state)) {}

  void step(
      const ops::Parameter& p,
      long step,
      double lr,
      double decay
  ) override {
    ops::AdamW8State state{array(0), array(1), array(2), array(3)};
    ops::adamw8_step(numbers(lr, decay), step, p, state);
  }
};

class LionRule : public RuleOf<ops::Lion, ops::lion_graph> {
 public:
  LionRule(const OptimConfig& c, RuleState state)
      : RuleOf({}, std::move(state)) {
    const auto [beta1, beta2] = c.betas_or_default();
    hyper_.beta1 = static_cast<float>(beta1);
    hyper_.beta2 = static_cast<float>(beta2);
  }

  void step(const ops::Parameter& p, long, double lr, double decay) override {
    ops::lion_step(numbers(lr, decay), p, array(0));
  }
};

ops::StateArrays two_moments(const OptimConfig&, const mx::Shape& shape) {
  return {{"m", shape}, {"v", shape}};
}

ops::StateArrays codes(const OptimConfig&, const mx::Shape& shape) {
  return ops::adamw8_state(ops::StateArray{"", shape}.elements());
}

bool is_large(const OptimConfig&, const nn::WeightSpec& p) {
  return p.elements() >= kLeast8Bit;
}

}  // namespace

OptimizerKind adamw_kind() {
  return {
      .name = "adamw",
      .smaller = "adamw8bit",
      .state = two_moments,
      .make = make_rule<AdamWRule>
  };
}

OptimizerKind adamw8_kind() {
  return {
      .name = "adamw8bit",
      .takes = is_large,
      .state = codes,
      .make = make_rule<AdamW8Rule>
  };
}

OptimizerKind lion_kind() {
  return {
      .name = "lion",
      .betas = {0.9, 0.99},
      .state = one_moment,
      .make = make_rule<LionRule>
  };
}

}  // namespace hearth::optim
