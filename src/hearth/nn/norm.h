#pragma once
// RMS norm and layer norm as modules.
#include <utility>

#include "hearth/nn/parameter_set.h"

namespace hearth::nn {

enum class NormKind : unsigned char { rms, layer };

struct NormConfig {
  NormKind kind = NormKind::rms;
  float eps = 1e-5f;
  bool plus_one = false;  // Gemma: the checkpoint holds weight - 1

  bool operator==(const NormConfig&) const = default;
};

class Norm {
 public:
  Norm(Affine own, const NormConfig& config);

  // Over the last dimension, in `dtype`.
  mx::array operator()(const mx::array& x, mx::Dtype dtype) const;
  // (h, norm(h)) with h = x + r; x and h are float32.
  std::pair<mx::array, mx::array> add(
      const mx::array& x,
      const mx::array& r,
      bool h_used = true
  ) const;

 private:
  NormConfig config_;
  Weight* weight_;
  Weight* bias_;
  mx::array scale() const;
};

}  // namespace hearth::nn
