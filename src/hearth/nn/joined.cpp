#include "hearth/nn/joined.h"

#include <algorithm>

#include "hearth/nn/weight_group.h"
#include "hearth/ops/linear/op.h"

namespace hearth::nn {

Joined::Joined(std::vector<const Linear*> layers, mx::array rows)
    : layers_(std::move(layers)), rows_(std::move(rows)) {}

std::optional<Joined> Joined::of(const std::vector<const Linear*>& layers) {
  const auto type = layers.front()->weight().value().dtype();
  const bool biased = layers.front()->bias() != nullptr;
  std::vector<mx::array> rows, biases;
  for (const Linear* layer : layers) {
    const Weight& w = layer->weight();
    if (w.form() != WeightForm::master || w.packed() || w.trainable ||
        w.value().dtype() != type || (layer->bias() != nullptr) != biased) {
      return {};
    }
    rows.push_back(w.value());
    if (biased) biases.push_back(layer->bias()->value());
  }
  auto all = join_rows(rows);
  all.eval();
  Joined out(layers, all);
  if (biased) {
    // As products add it, so that no step converts it.
    out.bias_ = mx::astype(mx::concatenate(biases, 0), type);
    out.bias_->eval();
  }
  WeightGroup weights;
  for (const Linear* layer : layers) weights.push_back(&layer->weight());
  out.views_ = split_rows(weights, all);
  mx::eval(out.views_);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i]->set(out.views_[i]);
  }
  return out;
}

bool Joined::current() const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i]->weight().value().id() != views_[i].id()) return false;
  }
  return true;
}

bool Joined::counts(const Pass& pass) const {
  const auto plain = [&](const Linear* layer) { return layer->plain(pass); };
  return !pass.training && current() && std::ranges::all_of(layers_, plain);
}

mx::array Joined::operator()(const mx::array& x) const {
  return ops::linear(x, rows_, bias_);
}

}  // namespace hearth::nn
