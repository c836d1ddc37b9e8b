#include "hearth/train/objectives/language_model.h"

#include <cmath>

#include <fmt/format.h>

#include "hearth/train/loop/session.h"

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

void LanguageModelConfig::fields(FieldVisitor& v) {
  v("label_smoothing", label_smoothing, "share spread evenly over all tokens",
    may_change(between(0, 0.9)));
  v("z_loss", z_loss, "weight of the squared log-sum-exp",
    may_change(at_least(0)));
  v("neftune", neftune, "noise on the embeddings; 0: none",
    may_change(at_least(0)));
}

LanguageModelOptions LanguageModelConfig::options() const {
  return {
      .label_smoothing = static_cast<float>(label_smoothing),
      .z_loss = static_cast<float>(z_loss),
      .neftune = static_cast<float>(neftune)
  };
}

ObjectiveKind language_model_kind() {
  return {
      .name = "lm",
      .config = [] { return ObjectiveConfig(LanguageModelConfig()); },
      .make = [](const Session& s) -> std::unique_ptr<Objective> {
        const auto& own = s.recipe.train.objectives.get<LanguageModelConfig>();
        return std::make_unique<LanguageModel>(own.options());
      },
      .describe =
          [](double loss, const NamedValues&) {
            return fmt::format("perplexity {:.2f}", std::exp(loss));
          },
  };
}

}  // namespace hearth::train
