#pragma once
// The feed-forward part of a block: gated (gate, up, down), plain (fc, proj),
// or with a partial gate.
#include <memory>
#include <optional>
#include <vector>

#include "hearth/nn/gate.h"
#include "hearth/nn/joined.h"
#include "hearth/nn/weight_group.h"

namespace hearth::nn {

struct MlpConfig {
  ops::Activation act = ops::Activation::silu;
  std::optional<GateConfig> gate;  // a partial one
};

class Mlp {
 public:
  // Of the weights that the set has for that layer: gate, up and down, or up
  // and down alone: then down(act(up)).
  Mlp(const ParameterSet& set, int layer, const MlpConfig& config);
  mx::array operator()(const Normed& x, const Pass& pass) const;

  std::vector<Linear*> linears();
  // As Joined says: gate and up.
  void join();
  // The weights that a training step's one product may take; empty: none.
  WeightGroup trained_together() const;
  Gate* gate() { return gate_ ? &*gate_ : nullptr; }

 private:
  MlpConfig config_;

  // down(act(gate) * up), of two arrays or, where one product gave both, of
  // one; or down(act(first)).
  mx::array activated_down(
      const std::vector<mx::array>& before,
      const Pass& pass
  ) const;
  // Those that read x: gate and up, or up alone.
  std::vector<const Linear*> inputs() const;
  // first_ is the gate's where there is one, else up's, and up_ is null.
  std::unique_ptr<Linear> first_, up_, down_;
  std::optional<Gate> gate_;
  std::optional<Joined> joined_;
};

// The inner width at which three matrices have as many parameters as a plain
// MLP's two at `ffn`, a multiple of 8.
int equal_parameter_width(int ffn);

}  // namespace hearth::nn
