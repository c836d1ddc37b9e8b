#include "hearth/nn/norm.h"

namespace hearth::nn {

std::vector<mx::array> with_input_again(
    const std::function<std::vector<mx::array>(const std::vector<mx::array>&)>&
        f,
    const Normed& x,
    const std::vector<mx::array>& weights
) {
  using Arrays = std::vector<mx::array>;
  const auto with = [](const mx::array& first, const Arrays& rest,
                       std::size_t from) {
    Arrays all{first};
    all.insert(
        all.end(), rest.begin() + static_cast<std::ptrdiff_t>(from), rest.end()
    );
    return all;
  };
  if (!x.again) return f(with(x.y, weights, 0));
  // x, n, the norm's weight, and the weights.
  const auto whole = [f, with](const Arrays& v) { return f(with(v[0], v, 3)); };
  const auto back = [f, with](const Arrays& v, const Arrays& ct, auto&&) {
    // It waits for the gradient, lest x be made in the forward pass.
    const auto n = mx::depends({v[1]}, ct)[0];
    const auto x_again = ops::norm_again({n, v[2]});
    auto gradients = mx::vjp(f, with(x_again, v, 3), ct).second;
    // Neither n nor the norm's weight gets one through here.
    gradients.insert(gradients.begin() + 1, {v[1], v[2]});
    return gradients;
  };
  Arrays arguments{x.y, x.again->n, x.again->w};
  arguments.insert(arguments.end(), weights.begin(), weights.end());
  return mx::custom_vjp(whole, back)(arguments);
}

Norm::Norm(Affine own, const NormConfig& config)
    : config_(config), weight_(own.weight), bias_(own.bias) {}

mx::array Norm::scale() const {
  return config_.plus_one
             ? mx::add(
                   mx::astype(weight_->value(), mx::float32), mx::array(1.0f)
               )
             : weight_->value();
}

mx::array Norm::operator()(const mx::array& x, mx::Dtype dtype) const {
  if (config_.kind == NormKind::rms) {
    return ops::rms_norm(x, scale(), config_.eps, dtype);
  }
  return ops::layer_norm(x, scale(), bias_->value(), config_.eps, dtype);
}

std::pair<mx::array, Normed> Norm::add(
    const mx::array& x,
    const mx::array& r,
    const Pass& pass,
    bool h_used
) const {
  if (config_.kind == NormKind::layer) {
    const auto [h, y] =
        ops::add_layer_norm(x, r, scale(), bias_->value(), config_.eps, h_used);
    return {h, y};
  }
  if (pass.training && pass.cheap_again) {
    const auto added =
        ops::add_rms_norm_kept(x, r, scale(), config_.eps, h_used);
    return {added.h, {added.y, added.again}};
  }
  const auto [h, y] = ops::add_rms_norm(x, r, scale(), config_.eps, h_used);
  return {h, y};
}

}  // namespace hearth::nn
