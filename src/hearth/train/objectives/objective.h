#pragma once
// What a run minimises. The loop knows only this: a sum over tokens, and what
// to divide it by. Pre-training, fine-tuning, preference pairs and, above this
// area, distillation differ here and nowhere in the loop.
#include <memory>
#include <optional>

#include "hearth/models/decoder.h"
#include "hearth/train/step/micro_batch.h"

namespace hearth::train {

struct ObjectiveValue {
  mx::array loss_sum;    // float32 scalar, differentiated
  mx::array weight_sum;  // float32 scalar: what the sum is a sum over
  // Of pairs: how many are told apart. Not differentiated.
  std::optional<mx::array> right_sum;
};

class Objective {
 public:
  virtual ~Objective() = default;
  virtual ObjectiveValue operator()(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const = 0;
  // Rows that must stay together when a batch is cut.
  virtual std::uint32_t row_group() const { return 1; }
};

struct LanguageModelOptions {
  float label_smoothing = 0, z_loss = 0;
  float neftune = 0;  // noise on the embeddings while training
  // As nn::Pass has them; off to measure what fusing is worth.
  bool fused_attention = true, fused_head = true;
};

// Cross-entropy of the next token, weighted by the batch's weights; smoothing
// and z-loss are added in a training pass alone.
class LanguageModel : public Objective {
 public:
  explicit LanguageModel(LanguageModelOptions options = {})
      : options_(options) {}
  ObjectiveValue operator()(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const override;

 private:
  LanguageModelOptions options_;
};

}  // namespace hearth::train
