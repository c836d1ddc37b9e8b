#include "hearth/nn/mlp.h"

#include <algorithm>

#include "hearth/ops/arithmetic.h"

namespace hearth::nn {

int equal_parameter_width(int ffn) {
  return std::max(8, (2 * ffn / 3 + 4) / 8 * 8);
}

Mlp::Mlp(ParameterSet& set, const std::string& name, const MlpConfig& c)
    : config_(c) {
  const LinearConfig in{
      .in = c.dim, .out = c.ffn, .bias = c.bias, .transposed = c.conv1d
  };
  const LinearConfig out{
      .in = c.ffn,
      .out = c.dim,
      .bias = c.bias,
      .transposed = c.conv1d,
      .init = Init::small_normal
  };
  const bool gated = c.gated || c.gate;
  first_ = std::make_unique<Linear>(
      set,
      name + (c.conv1d ? ".c_fc"
              : gated  ? ".gate_proj"
                       : ".fc1"),
      in
  );
  if (gated) up_ = std::make_unique<Linear>(set, name + ".up_proj", in);
  down_ = std::make_unique<Linear>(
      set,
      name + (c.conv1d ? ".c_proj"
              : gated  ? ".down_proj"
                       : ".fc2"),
      out
  );
  if (c.gate) gate_.emplace(set, name, *c.gate);
}

mx::array Mlp::operator()(const mx::array& x, const Pass& pass) const {
  if (!up_)
    return (*down_)(ops::activate((*first_)(x, pass), config_.act), pass);
  if (!pass.training && !gate_) {
    const auto g = (*first_)(x, pass);
    return (*down_)(up_->gated(g, x, config_.act, pass), pass);
  }
  const auto both = project(x, {first_.get(), up_.get()}, pass);
  const auto inner =
      gate_ ? (*gate_)(both[1], both[0], x)
            : ops::gated_mlp_activation(both[0], both[1], config_.act);
  return (*down_)(inner, pass);
}

std::vector<Linear*> Mlp::linears() {
  std::vector<Linear*> out{first_.get()};
  if (up_) out.push_back(up_.get());
  out.push_back(down_.get());
  return out;
}

}  // namespace hearth::nn
