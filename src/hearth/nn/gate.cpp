#include "hearth/nn/gate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::nn {

void GateConfig::fields(FieldVisitor& v) {
  v("unit", unit, "activation of the gate",
    one_of({"glu", "gtu", "swish", "reglu", "gelu", "mish", "silu"}));
  v("alpha", alpha, "kind of alpha",
    one_of(
        {"fixed", "learnable", "cosine", "linear", "entropy", "confidence"}
    ));
  v("value", value, "alpha, or where a learnable one starts", between(0, 1));
  v("low", low, "lowest alpha of a schedule", between(0, 1));
  v("high", high, "highest alpha of a schedule", between(0, 1));
  v("steps", steps, "optimiser steps a schedule takes", at_least(1));
  v("step", step, "where a schedule stands when the model is made or loaded",
    at_least(0));
  v("reverse", reverse, "cosine: from low to high");
  v("scale", scale, "entropy, confidence: factor before the limits");
  v("temperature", temperature, "entropy, confidence: of the softmax",
    positive());
  v("beta", beta, "swish: z sigmoid(beta z)", positive());
  v("learn_beta", learn_beta, "swish: train beta");
  v("equal_parameters", equal_parameters,
    "shrink the width so that the parameters are a plain MLP's");
}

ops::PartialGate GateConfig::form() const {
  using ops::Activation;
  ops::PartialGate form;
  form.beta = static_cast<float>(beta);
  if (unit == "glu") form.act = Activation::sigmoid;
  if (unit == "gtu") form.act = Activation::tanh, form.tanh_value = true;
  if (unit == "swish" || unit == "silu") form.act = Activation::silu;
  if (unit == "reglu") form.act = Activation::relu;
  if (unit == "gelu") form.act = Activation::gelu;
  if (unit == "mish") form.act = Activation::mish;
  return form;
}

bool GateConfig::is_plain_glu() const {
  return alpha == "fixed" && value == 1 && unit != "gtu" && beta == 1 &&
         !learn_beta;
}

double scheduled_alpha(const GateConfig& c, std::int64_t step) {
  const double t = std::clamp(
      static_cast<double>(step) / static_cast<double>(c.steps), 0.0, 1.0
  );
  if (c.alpha == "linear") return c.low + (c.high - c.low) * t;
  const double sign = c.reverse ? -1 : 1;
  return c.low +
         (c.high - c.low) * 0.5 * (1 + sign * std::cos(std::numbers::pi * t));
}

void GateConfig::check() const {
  if (!learn_beta || unit == "swish") return;
  throw UsageError(
      fmt::format("gate.learn_beta must go with the unit swish, got {}", unit)
  );
}

double GateConfig::alpha_start() const {
  const double start = std::clamp(value, 1e-4, 1 - 1e-4);
  return std::log(start / (1 - start));
}

Gate::Gate(const ParameterSet& set, int layer, const GateConfig& config)
    : config_(config),
      raw_(set.find({io::Role::gate_alpha, layer})),
      beta_(set.find({io::Role::gate_beta, layer})) {
  config.check();
  set_step(config.step);
}

void Gate::set_step(std::int64_t step) {
  step_ = step;
  const double alpha =
      scheduled() ? nn::scheduled_alpha(config_, step) : config_.value;
  scheduled_ = mx::array(static_cast<float>(alpha));
}

bool Gate::scheduled() const {
  return config_.alpha == "cosine" || config_.alpha == "linear";
}

mx::array Gate::alpha(const mx::array& x) const {
  if (raw_ != nullptr) return mx::sigmoid(mx::reshape(raw_->value(), {}));
  if (config_.alpha != "entropy" && config_.alpha != "confidence") {
    return scheduled_;
  }
  const auto p = mx::softmax(
      mx::divide(
          mx::astype(mx::stop_gradient(x), mx::float32),
          mx::array(static_cast<float>(config_.temperature))
      ),
      -1, true
  );
  const auto width = static_cast<float>(x.shape(-1));
  const auto raw =
      config_.alpha == "entropy"
          ? mx::divide(
                mx::negative(
                    mx::sum(
                        mx::multiply(p, mx::log(mx::add(p, mx::array(1e-12f)))),
                        -1
                    )
                ),
                mx::array(std::log(width))
            )
          : mx::subtract(mx::array(1.0f), mx::max(p, -1));
  return mx::clip(
      mx::multiply(mx::mean(raw), mx::array(static_cast<float>(config_.scale))),
      mx::array(static_cast<float>(config_.low)),
      mx::array(static_cast<float>(config_.high))
  );
}

mx::array Gate::operator()(
    const mx::array& value,
    const mx::array& gate,
    const mx::array& x
) const {
  if (beta_ == nullptr) {
    return ops::partial_gate(value, gate, alpha(x), config_.form());
  }
  // z sigmoid(beta z): the op has beta as a constant, so a learnt one is
  // written out.
  const auto beta = mx::astype(mx::reshape(beta_->value(), {}), gate.dtype());
  const auto act = mx::multiply(gate, mx::sigmoid(mx::multiply(gate, beta)));
  const auto a = mx::astype(alpha(x), gate.dtype());
  return mx::multiply(
      value,
      mx::add(mx::multiply(a, act), mx::subtract(mx::array(1.0f, a.dtype()), a))
  );
}

}  // namespace hearth::nn
