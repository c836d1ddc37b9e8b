#pragma once
// The partial gate of an MLP: v (alpha act(g) + 1 - alpha). Seven units and the
// kinds of alpha. alpha = 1 is the full gated unit, alpha = 0 a linear one.
#include <string>

#include "hearth/base/config.h"
#include "hearth/nn/parameter_set.h"
#include "hearth/ops/gate/op.h"

namespace hearth::nn {

struct GateConfig {
  std::string unit = "silu";
  std::string alpha = "fixed";
  double value = 1;          // fixed, or where a learnt one starts
  double low = 0, high = 1;  // of schedules, and limits of the last two kinds
  std::int64_t steps = 1000;
  std::int64_t step = 0;              // where a schedule starts or stands
  bool reverse = false;               // cosine: from low to high
  double scale = 1, temperature = 1;  // entropy, confidence
  double beta = 1;
  bool learn_beta = false;
  bool equal_parameters = true;

  bool operator==(const GateConfig&) const = default;
  void fields(FieldVisitor& v);
  // Throws UsageError when the settings do not go together.
  void check() const;
  // What a learnable alpha's weight starts from: it goes through a sigmoid.
  double alpha_start() const;
  // The unit's activation.
  ops::PartialGate form() const;
  // What a stock checkpoint can hold: alpha fixed at 1 and an activation that
  // gated MLPs have.
  bool is_plain_glu() const;
};

class Gate {
 public:
  // A learnable alpha, before the sigmoid, and a learnt beta are the set's for
  // that layer.
  Gate(const ParameterSet& set, int layer, const GateConfig& config);

  // x is the MLP's input; entropy and confidence read it.
  mx::array operator()(
      const mx::array& value,
      const mx::array& gate,
      const mx::array& x
  ) const;

  // Moves a scheduled alpha to where it stands at that optimiser step.
  void set_step(std::int64_t step);
  std::int64_t step() const { return step_; }
  // Whether alpha follows a schedule, and where it stands: a float32 scalar. A
  // graph that is compiled once for all steps puts its own input here.
  bool scheduled() const;
  mx::array& scheduled_alpha() { return scheduled_; }
  // Now; of entropy and confidence it depends on the input.
  mx::array alpha(const mx::array& x) const;
  const GateConfig& config() const { return config_; }

 private:
  GateConfig config_;
  Weight *raw_, *beta_;
  std::int64_t step_ = 0;
  mx::array scheduled_{1.0f};
};

// Where a cosine or linear schedule stands.
double scheduled_alpha(const GateConfig& config, std::int64_t step);

}  // namespace hearth::nn
