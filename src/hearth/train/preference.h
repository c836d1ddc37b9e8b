#pragma once
// Direct preference optimisation: of two answers the chosen one should become
// likelier, against the model it all started from. Rows come in pairs, chosen
// first; a pair is one unit of the loss:
//   -log sigmoid(beta ((c - c_ref) - (r - r_ref)))
// with c and r the log probabilities of the two answers' own tokens.
#include <memory>

#include "hearth/train/objective.h"

namespace hearth::train {

class Preference : public Objective {
 public:
  // reference scores with the starting weights. Null: the model itself with
  // its adapters off.
  Preference(float beta, std::shared_ptr<const models::Decoder> reference)
      : beta_(beta), reference_(std::move(reference)) {}
  ObjectiveValue operator()(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const override;
  std::uint32_t row_group() const override { return 2; }

 private:
  float beta_;
  std::shared_ptr<const models::Decoder> reference_;
};

}  // namespace hearth::train
