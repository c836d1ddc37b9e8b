#include "hearth/nn/linear.h"

#include <algorithm>

#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/linear/op.h"
#include "hearth/ops/quantized_linear/op.h"

namespace hearth::nn {
namespace {

mx::array add_bias(const mx::array& y, const std::optional<mx::array>& bias) {
  return bias ? mx::add(y, mx::astype(*bias, y.dtype())) : y;
}

}  // namespace

mx::array multiply(
    const mx::array& x,
    const Weight& weight,
    const std::optional<mx::array>& bias,
    const Pass& pass
) {
  // Rounded weights are not multiplied in float16.
  if (weight.quantized() && x.dtype() == mx::float16) {
    const auto wide = mx::astype(x, mx::float32);
    return mx::astype(multiply(wide, weight, bias, pass), mx::float16);
  }
  if (weight.quantized()) {
    return add_bias(
        ops::quantized_linear(x, *weight.quantized(), pass.quantized), bias
    );
  }
  if (weight.value().size() == 0) return ops::linear(x, weight.packed(), bias);
  return ops::linear(x, weight.value(), bias, weight.packed());
}

Linear::Linear(Affine own)
    : name_(own.weight->module()), weight_(own.weight), bias_(own.bias) {}

const Lora* Linear::adapter(const Pass& pass) const {
  if (!pass.adapters) return nullptr;
  if (pass.lora != nullptr) return pass.lora->of(name_);
  return merged_ ? nullptr : lora_.get();
}

mx::array Linear::operator()(const mx::array& x, const Pass& pass) const {
  std::optional<mx::array> bias;
  if (bias_ != nullptr) bias = bias_->value();
  const Lora* lora = adapter(pass);
  const bool homed = pass.training && weight_->home;
  if (lora == nullptr && !homed) return multiply(x, *weight_, bias, pass);
  if (const auto whole = part(pass)) return ops::linears(x, {*whole})[0];
  const auto uses =
      pass.training ? ops::fork(x, 2) : std::vector<mx::array>(2, x);
  if (!lora->scales_rows()) {
    const auto y = multiply(uses[0], *weight_, bias, pass);
    return (*lora)(uses[1], y, *weight_, pass);
  }
  const auto y = multiply(uses[0], *weight_, {}, pass);
  return add_bias((*lora)(uses[1], y, *weight_, pass), bias);
}

bool Linear::plain(const Pass& pass) const {
  return !weight_->quantized() && weight_->value().size() > 0 &&
         adapter(pass) == nullptr;
}

std::optional<ops::LinearPart> Linear::part(const Pass& pass) const {
  if (weight_->quantized()) return {};
  ops::LinearPart out{{}, {}, weight_->packed(), {}, weight_->home};
  if (weight_->value().size() > 0) out.w = weight_->value();
  if (bias_ != nullptr) out.bias = bias_->value();
  if (const Lora* lora = adapter(pass)) {
    out.adapter = lora->low_rank(pass);
    if (!out.adapter) return {};
  }
  return out;
}

std::vector<mx::array> project(
    const mx::array& x,
    const std::vector<const Linear*>& layers,
    const Pass& pass
) {
  std::vector<ops::LinearPart> parts;
  for (const Linear* layer : layers) {
    const auto part = pass.training ? layer->part(pass) : std::nullopt;
    if (part) parts.push_back(*part);
  }
  if (parts.size() == layers.size()) return ops::linears(x, parts);
  const auto uses = pass.training
                        ? ops::fork(x, static_cast<int>(layers.size()))
                        : std::vector<mx::array>(layers.size(), x);
  std::vector<mx::array> out;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    out.push_back((*layers[i])(uses[i], pass));
  }
  return out;
}

std::vector<mx::array> project(
    const Normed& x,
    const std::vector<const Linear*>& layers,
    const Pass& pass
) {
  // An adapter's gradients read x, too; a frozen weight's reads nothing.
  const bool plain = std::ranges::all_of(layers, [](const Linear* l) {
    return l->weight().trainable && l->lora() == nullptr;
  });
  if (!x.again || !plain) return project(x.y, layers, pass);
  std::vector<Weight*> own;
  for (const Linear* l : layers) {
    own.push_back(&l->weight());
    if (l->bias() != nullptr) own.push_back(l->bias());
  }
  const auto products = [own, layers, pass](const std::vector<mx::array>& v) {
    const std::vector<mx::array> weights(v.begin() + 1, v.end());
    const Substitution inside(own, weights);
    return project(v[0], layers, pass);
  };
  std::vector<mx::array> weights;
  for (const Weight* w : own) weights.push_back(w->value());
  return with_input_again(products, x, weights);
}

mx::array Linear::gated(
    const mx::array& gate,
    const mx::array& x,
    ops::Activation act,
    const Pass& pass
) const {
  const bool dense = !weight_->quantized() && weight_->value().size() > 0;
  if (pass.training || !dense || bias_ != nullptr || adapter(pass) != nullptr) {
    return ops::gated_mlp_activation(gate, (*this)(x, pass), act);
  }
  return ops::linear_gated(gate, x, weight_->value(), act, weight_->packed());
}

Lora& Linear::attach(
    ParameterSet& set,
    const LoraConfig& config,
    std::uint64_t index
) {
  lora_ = std::make_unique<Lora>(set, *weight_, config, index);
  return *lora_;
}

}  // namespace hearth::nn
