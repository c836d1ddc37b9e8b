#pragma once
// The feed-forward part of a block: gated (gate, up, down), plain (fc, proj),
// or with a partial gate.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/nn/gate.h"
#include "hearth/nn/linear.h"

namespace hearth::nn {

struct MlpConfig {
  int dim = 0, ffn = 0;
  ops::Activation act = ops::Activation::silu;
  bool bias = false;
  bool gated = true;
  // GPT-2's names and transposed weights; not gated.
  bool conv1d = false;
  std::optional<GateConfig> gate;
};

class Mlp {
 public:
  Mlp(ParameterSet& set, const std::string& name, const MlpConfig& config);
  mx::array operator()(const mx::array& x, const Pass& pass) const;

  std::vector<Linear*> linears();
  Gate* gate() { return gate_ ? &*gate_ : nullptr; }

 private:
  MlpConfig config_;

  // down(act(gate) * up), or down(act(first)).
  mx::array activated_down(
      const std::vector<mx::array>& before,
      const Pass& pass
  ) const;
  std::unique_ptr<Linear> first_, up_, down_;
  std::optional<Gate> gate_;
};

// The inner width at which three matrices have as many parameters as a plain
// MLP's two at `ffn`, a multiple of 8.
int equal_parameter_width(int ffn);

}  // namespace hearth::nn
