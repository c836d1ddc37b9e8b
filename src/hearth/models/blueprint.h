#pragma once
// A model as records: for every weight the part it plays, its checkpoint name,
// shape and flags, in the order a checkpoint lists them. Whatever goes over a
// model's weights (the decoder's modules, the CPU pass, the planner, adapters)
// starts here and asks for roles, so the block is written down once.
#include <vector>

#include "hearth/models/decoder_config.h"
#include "hearth/nn/weight.h"

namespace hearth::models {

class Blueprint {
 public:
  explicit Blueprint(const DecoderConfig& config);

  const std::vector<nn::WeightSpec>& weights() const { return weights_; }
  // Null where the model has none.
  const nn::WeightSpec* find(io::Role role, int layer = -1) const;
  // The matrices of a block, in the order it multiplies with them.
  std::vector<const nn::WeightSpec*> projections(int layer) const;
  // Those of all blocks: what adapters may be put on.
  std::vector<const nn::WeightSpec*> projections() const;

 private:
  std::vector<nn::WeightSpec> weights_;
};

// Whose names the model's weights have.
io::NameStyle name_style(const DecoderConfig& config);

}  // namespace hearth::models
