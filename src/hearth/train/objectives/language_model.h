#pragma once
// The objective `lm`: the cross-entropy of the next token.
#include "hearth/base/config.h"
#include "hearth/train/objectives/objective.h"
#include "hearth/train/objectives/objective_kind.h"

namespace hearth::train {

struct LanguageModelOptions {
  float label_smoothing = 0, z_loss = 0;
  float neftune = 0;  // noise on the embeddings while training
  // As nn::Pass has them; off to measure what fusing is worth.
  bool fused_attention = true, fused_head = true;
};

// Weighted by the batch's weights; smoothing and z-loss are added in a training
// pass alone.
class LanguageModel : public Objective {
 public:
  explicit LanguageModel(LanguageModelOptions options = {})
      : options_(options) {}
  ObjectiveValue operator()(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const override;
  bool draws_noise() const override { return options_.neftune > 0; }

 private:
  LanguageModelOptions options_;
};

// Its keys in a recipe's `train` section.
struct LanguageModelConfig {
  double label_smoothing = 0, z_loss = 0, neftune = 0;

  void fields(FieldVisitor& v);
  LanguageModelOptions options() const;
};

ObjectiveKind language_model_kind();

}  // namespace hearth::train
