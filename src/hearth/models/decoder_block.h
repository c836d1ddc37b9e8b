#pragma once
// One block of the decoder: attention and MLP, each behind a norm. The norm
// that reads the stream also does the addition before it, so a block hands on
// the stream and the branch that is still to be added.
#include <optional>
#include <vector>

#include "hearth/models/decoder.h"

namespace hearth::models {

struct Decoder::Stream {
  mx::array x;                      // float32
  std::optional<mx::array> branch;  // of the pass's dtype
};

class Decoder::Block {
 public:
  Block(
      nn::ParameterSet& set,
      const DecoderConfig& config,
      int layer,
      std::shared_ptr<const nn::Rotary> rotary
  );

  Stream operator()(const Stream& in, const nn::Pass& pass) const;
  // The same, with activations computed again when gradients are taken.
  Stream checkpointed(const Stream& in, const nn::Pass& pass) const;

  std::vector<nn::Linear*> linears();
  void join_products() { attention_.join(), mlp_.join(); }
  // Weights that a training step's one product may take.
  std::vector<nn::WeightGroup> trained_together() const {
    return {attention_.trained_together(), mlp_.trained_together()};
  }
  nn::Gate* gate() { return mlp_.gate(); }

 private:
  nn::ParameterSet& set_;
  int layer_;
  nn::Norm before_attention_;
  nn::Attention attention_;
  std::optional<nn::Norm> after_attention_;
  nn::Norm before_mlp_;
  nn::Mlp mlp_;
  std::optional<nn::Norm> after_mlp_;
};

}  // namespace hearth::models
