#pragma once
// A linear layer: dense and trainable, dense and frozen, or quantised; with or
// without an adapter.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/nn/lora.h"
#include "hearth/nn/norm.h"
#include "hearth/nn/parameter_set.h"
#include "hearth/nn/pass.h"
#include "hearth/ops/gate/op.h"

namespace hearth::nn {

class Linear {
 public:
  explicit Linear(Affine own);

  mx::array operator()(const mx::array& x, const Pass& pass) const;
  // act(gate) * (*this)(x): in one op where nothing is trained and the layer is
  // a dense matrix and no more.
  mx::array gated(
      const mx::array& gate,
      const mx::array& x,
      ops::Activation act,
      const Pass& pass
  ) const;

  // Whether it is a dense matrix in this pass, and no adapter counts.
  bool plain(const Pass& pass) const;
  // As one of the layers that ops::linears takes; empty where it is quantised
  // or its adapter is more than a product.
  std::optional<ops::LinearPart> part(const Pass& pass) const;

  // The checkpoint's, without ".weight" and ".bias".
  const std::string& name() const { return name_; }
  Weight& weight() const { return *weight_; }
  Weight* bias() const { return bias_; }
  Lora* lora() const { return lora_.get(); }
  Lora& attach(
      ParameterSet& set,
      const LoraConfig& config,
      std::uint64_t index
  );
  // Whether the weight has the adapter in it already, so that it counts once.
  bool merged() const { return merged_; }
  void set_merged(bool merged) { merged_ = merged; }

 private:
  std::string name_;
  Weight* weight_;
  Weight* bias_;
  std::unique_ptr<Lora> lora_;
  bool merged_ = false;

  // The adapter that counts in this pass; null: none.
  const Lora* adapter(const Pass& pass) const;
};

// What each of the layers makes of x: in one op where that saves something.
std::vector<mx::array> project(
    const mx::array& x,
    const std::vector<const Linear*>& layers,
    const Pass& pass
);
// The same, of which the backward pass makes x again where it can be.
std::vector<mx::array> project(
    const Normed& x,
    const std::vector<const Linear*>& layers,
    const Pass& pass
);

// x W^T of a parameter in whichever form it is held.
mx::array multiply(
    const mx::array& x,
    const Weight& weight,
    const std::optional<mx::array>& bias,
    const Pass& pass
);

}  // namespace hearth::nn
