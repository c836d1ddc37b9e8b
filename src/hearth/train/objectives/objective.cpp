#include "hearth/train/objectives/objective.h"

namespace hearth::train {

ObjectiveValue LanguageModel::operator()(
    const models::Decoder& model,
    const MicroBatch& batch,
    const nn::Pass& pass
) const {
  ops::HeadLossOptions options;
  if (pass.training) {
    options.terms.label_smoothing = options_.label_smoothing;
    options.terms.z_loss = options_.z_loss;
  }
  nn::Pass noisy = pass;
  noisy.embedding_noise = options_.neftune;
  noisy.fused_attention = options_.fused_attention;
  noisy.fused_head = options_.fused_head;
  noisy.plain_loss = true;
  const auto loss =
      model.loss(batch.ids, batch.targets, batch.weights, noisy, options);
  return {loss.loss_sum, loss.weight_sum};
}

}  // namespace hearth::train
