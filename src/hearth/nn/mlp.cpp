#include "hearth/nn/mlp.h"

#include <algorithm>

#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/pace.h"

namespace hearth::nn {

int equal_parameter_width(int ffn) {
  return std::max(8, (2 * ffn / 3 + 4) / 8 * 8);
}

Mlp::Mlp(const ParameterSet& set, int layer, const MlpConfig& config)
    : config_(config),
      down_(std::make_unique<Linear>(set.affine(io::Role::down, layer))) {
  const Affine gate = set.affine(io::Role::gate, layer);
  auto up = std::make_unique<Linear>(set.affine(io::Role::up, layer));
  if (gate) {
    first_ = std::make_unique<Linear>(gate);
    up_ = std::move(up);
  } else {
    first_ = std::move(up);
  }
  if (config.gate) gate_.emplace(set, layer, *config.gate);
}

mx::array Mlp::operator()(const Normed& x, const Pass& pass) const {
  if (!up_) return activated_down(project(x, inputs(), pass), pass);
  if (joined_ && !gate_ && joined_->counts(pass)) {
    const auto both = (*joined_)(x.y);
    return (*down_)(ops::gated_mlp_activation(both, config_.act), pass);
  }
  if (!pass.training && !gate_) {
    const auto g = (*first_)(x.y, pass);
    return (*down_)(up_->gated(g, x.y, config_.act, pass), pass);
  }
  if (!gate_) {
    if (const auto both = grouped_product(x, inputs())) {
      return activated_down({ops::pace(*both)}, pass);
    }
    return activated_down(project(x, inputs(), pass), pass);
  }
  // The gate reads x, too.
  const auto both = project(x.y, inputs(), pass);
  return (*down_)((*gate_)(both[1], both[0], x.y), pass);
}

mx::array Mlp::activated_down(
    const std::vector<mx::array>& before,
    const Pass& pass
) const {
  const auto run = [this, pass](const std::vector<mx::array>& v) {
    const auto inner = [&] {
      if (!up_) return ops::activate(v[0], config_.act);
      if (v.size() == 1) return ops::gated_mlp_activation(v[0], config_.act);
      return ops::gated_mlp_activation(v[0], v[1], config_.act);
    };
    return (*down_)(pass.training ? ops::pace(inner()) : inner(), pass);
  };
  const bool again = pass.training && pass.cheap_again &&
                     down_->weight().trainable && down_->lora() == nullptr;
  if (!again) return run(before);
  // Of the product that is differentiated nothing is computed again but what it
  // reads. That waits for the gradient, lest it be made in the forward pass.
  std::vector<Weight*> own{&down_->weight()};
  if (down_->bias() != nullptr) own.push_back(down_->bias());
  const auto kept = static_cast<std::ptrdiff_t>(before.size());
  const auto whole = [run, own, kept](const std::vector<mx::array>& v) {
    const std::vector<mx::array> weights(v.begin() + kept, v.end());
    const Substitution inside(own, weights);
    return std::vector<mx::array>{run({v.begin(), v.begin() + kept})};
  };
  std::vector<mx::array> arguments = before;
  for (const Weight* p : own) arguments.push_back(p->value());
  return mx::custom_vjp(whole, [whole](const auto& v, const auto& ct, auto&&) {
    return mx::vjp(whole, mx::depends(v, ct), ct).second;
  })(arguments)[0];
}

void Mlp::join() {
  if (joined_ && joined_->current()) return;
  if (up_) joined_ = Joined::of(inputs());
}

std::vector<const Linear*> Mlp::inputs() const {
  std::vector<const Linear*> all{first_.get()};
  if (up_) all.push_back(up_.get());
  return all;
}

WeightGroup Mlp::trained_together() const {
  if (!up_ || gate_) return {};
  return nn::trained_together(inputs());
}

std::vector<Linear*> Mlp::linears() {
  std::vector<Linear*> out{first_.get()};
  if (up_) out.push_back(up_.get());
  out.push_back(down_.get());
  return out;
}

}  // namespace hearth::nn
