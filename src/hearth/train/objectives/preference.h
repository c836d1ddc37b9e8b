#pragma once
// The objective `dpo`, direct preference optimisation: of two answers the
// chosen one should become likelier, against the model it all started from.
// Rows come in pairs, chosen first; a pair is one unit of the loss:
//   -log sigmoid(beta ((c - c_ref) - (r - r_ref)))
// with c and r the log probabilities of the two answers' own tokens. Rows that
// only fill a batch up carry no weight and are no pair.
#include <memory>

#include "hearth/nn/lora.h"
#include "hearth/train/objectives/objective.h"
#include "hearth/train/objectives/objective_kind.h"

namespace hearth::train {

class Preference : public Objective {
 public:
  // The start scores as the model itself does with its adapters off,
  explicit Preference(float beta) : beta_(beta) {}
  // as a model of its own,
  Preference(float beta, std::shared_ptr<const models::Decoder> start)
      : beta_(beta), reference_(std::move(start)) {}
  // or as the model with these in place of its adapters.
  Preference(float beta, std::shared_ptr<const nn::LoraSet> start)
      : beta_(beta), adapters_(std::move(start)) {}
  ObjectiveValue operator()(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const override;
  std::uint32_t row_group() const override { return 2; }

 private:
  float beta_;
  std::shared_ptr<const models::Decoder> reference_;
  std::shared_ptr<const nn::LoraSet> adapters_;

  // What the start makes of each pair.
  mx::array before(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const;
};

// Its key in a recipe's `train` section.
struct PreferenceConfig {
  double dpo_beta = 0.1;

  void fields(FieldVisitor& v);
};

ObjectiveKind preference_kind();

}  // namespace hearth::train
