#include "hearth/nn/joined.h"

#include <algorithm>

#include "hearth/ops/linear/op.h"

namespace hearth::nn {

Joined::Joined(std::vector<const Linear*> layers, mx::array rows)
    : layers_(std::move(layers)), rows_(std::move(rows)) {}

std::optional<Joined> Joined::of(const std::vector<Linear*>& layers) {
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
  auto all = mx::concatenate(rows, 0);
  all.eval();
  Joined out({layers.begin(), layers.end()}, all);
  if (biased) {
    // As products add it, so that no step converts it.
    out.bias_ = mx::astype(mx::concatenate(biases, 0), type);
    out.bias_->eval();
  }
  int at = 0;
  for (Linear* layer : layers) {
    Weight& w = layer->weight();
    const int end = at + w.shape[0];
    auto view = mx::slice(all, {at, 0}, {end, all.shape(1)});
    view.eval();
    out.views_.push_back(view);
    w.set(view);
    at = end;
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
