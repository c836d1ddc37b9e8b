#pragma once
// RMS norm and layer norm as modules.
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "hearth/nn/parameter_set.h"
#include "hearth/nn/pass.h"
#include "hearth/ops/norm/op.h"

namespace hearth::nn {

enum class NormKind : unsigned char { rms, layer };

struct NormConfig {
  NormKind kind = NormKind::rms;
  float eps = 1e-5f;
  bool plus_one = false;  // Gemma: the checkpoint holds weight - 1

  bool operator==(const NormConfig&) const = default;
};

// What a norm made, and what makes it again where that was kept.
struct Normed {
  mx::array y;
  std::optional<ops::NormAgain> again;

  // NOLINTNEXTLINE(google-explicit-constructor): any array that nothing makes
  // again is one.
  Normed(mx::array normed, std::optional<ops::NormAgain> from = {})
      : y(std::move(normed)), again(std::move(from)) {}
};

// f of x and of weights, for whose gradients x is made again where it can be.
// Else what f reads of x would be kept from the forward pass.
std::vector<mx::array> with_input_again(
    const std::function<std::vector<mx::array>(const std::vector<mx::array>&)>&
        f,
    const Normed& x,
    const std::vector<mx::array>& weights
);

class Norm {
 public:
  Norm(Affine own, const NormConfig& config);

  // Over the last dimension, in `dtype`.
  mx::array operator()(const mx::array& x, mx::Dtype dtype) const;
  // (h, norm(h)) with h = x + r; x and h are float32.
  std::pair<mx::array, Normed> add(
      const mx::array& x,
      const mx::array& r,
      const Pass& pass,
      bool h_used = true
  ) const;

 private:
  NormConfig config_;
  Weight* weight_;
  Weight* bias_;
  mx::array scale() const;
};

}  // namespace hearth::nn
