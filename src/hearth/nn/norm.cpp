#include "hearth/nn/norm.h"

#include "hearth/ops/norm/op.h"

namespace hearth::nn {

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

std::pair<mx::array, mx::array> Norm::add(
    const mx::array& x,
    const mx::array& r,
    bool h_used
) const {
  if (config_.kind == NormKind::rms) {
    return ops::add_rms_norm(x, r, scale(), config_.eps, h_used);
  }
  return ops::add_layer_norm(
      x, r, scale(), bias_->value(), config_.eps, h_used
  );
}

}  // namespace hearth::nn
