#include "hearth/train/objectives/preference.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/train/loop/session_start.h"
#include "hearth/train/objectives/language_model.h"

namespace hearth::train {
namespace {

// The sum of each row's log probabilities over the tokens that count.
mx::array row_scores(
    const models::Decoder& model,
    const MicroBatch& batch,
    const nn::Pass& pass
) {
  const auto each = model.log_probs(batch.ids, batch.targets, pass);
  return mx::sum(mx::multiply(each, batch.weights), -1);
}

// Chosen minus rejected of each pair.
mx::array margins(const mx::array& rows) {
  const auto pairs = mx::reshape(rows, {-1, 2});
  const auto parts = mx::split(pairs, 2, 1);
  return mx::reshape(mx::subtract(parts[0], parts[1]), {-1});
}

// Which pairs have a token that counts.
mx::array pairs_of(const mx::array& weights) {
  const auto rows = mx::reshape(mx::sum(weights, -1), {-1, 2});
  return mx::greater(mx::sum(rows, -1), mx::array(0.0f));
}

// The terms of a language model's loss have no place in this one.
void check_terms(const Recipe& recipe) {
  const auto& terms = recipe.train.objectives.get<LanguageModelConfig>();
  const std::pair<const char*, double> all[] = {
      {"label_smoothing", terms.label_smoothing},
      {"z_loss", terms.z_loss},
      {"neftune", terms.neftune}
  };
  for (const auto& [key, value] : all) {
    if (value == 0) continue;
    throw UsageError(
        fmt::format("train.{} must be 0 with train.objective dpo", key)
    );
  }
}

// Measured against the start of the run.
std::unique_ptr<Objective> make_preference(const Session& s) {
  const auto& own = s.recipe.train.objectives.get<PreferenceConfig>();
  const auto beta = static_cast<float>(own.dpo_beta);
  if (!s.recipe.lora) {
    return std::make_unique<Preference>(beta, start_decoder(s));
  }
  if (s.recipe.model.adapter.empty()) return std::make_unique<Preference>(beta);
  return std::make_unique<Preference>(beta, start_adapters(s));
}

}  // namespace

mx::array Preference::before(
    const models::Decoder& model,
    const MicroBatch& batch,
    const nn::Pass& pass
) const {
  nn::Pass frozen = pass;
  frozen.training = false;
  frozen.noise.reset();
  frozen.adapters = adapters_ != nullptr;
  frozen.lora = adapters_.get();
  const models::Decoder& reference = reference_ ? *reference_ : model;
  return mx::stop_gradient(margins(row_scores(reference, batch, frozen)));
}

ObjectiveValue Preference::operator()(
    const models::Decoder& model,
    const MicroBatch& batch,
    const nn::Pass& pass
) const {
  if (batch.rows % 2 != 0) {
    throw Error(
        fmt::format(
            "[train.Preference] rows must come in pairs, got {}", batch.rows
        )
    );
  }
  const auto margin = mx::multiply(
      mx::array(beta_),
      mx::subtract(
          margins(row_scores(model, batch, pass)), before(model, batch, pass)
      )
  );
  // -log sigmoid(m) without overflow.
  const auto loss = mx::logaddexp(mx::array(0.0f), mx::negative(margin));
  const auto counted = mx::astype(pairs_of(batch.weights), mx::float32);
  const auto right = mx::multiply(
      mx::astype(mx::greater(margin, mx::array(0.0f)), mx::float32), counted
  );
  return {
      mx::sum(mx::multiply(loss, counted)),
      mx::sum(counted),
      {{"accuracy", mx::stop_gradient(mx::sum(right))}}
  };
}

void PreferenceConfig::fields(FieldVisitor& v) {
  v("dpo_beta", dpo_beta, "dpo: strength of the pull to the reference",
    may_change(positive()));
}

ObjectiveKind preference_kind() {
  return {
      .name = "dpo",
      .needs =
          {.pairs = true,
           .row_group = 2,
           .arrange = data::Arrange::kPad,
           .start_model = true},
      .config = [] { return ObjectiveConfig(PreferenceConfig()); },
      .check = check_terms,
      .make = make_preference,
      .measure =
          [](const Recipe& r) {
            const auto& own = r.train.objectives.get<PreferenceConfig>();
            return Json{{"dpo_beta", own.dpo_beta}};
          },
      .describe =
          [](double, const NamedValues& means) {
            const auto accuracy = means.find("accuracy");
            if (accuracy == means.end()) return std::string();
            return fmt::format(
                "{:.1f} % of pairs told apart", 100 * accuracy->second
            );
          },
  };
}

}  // namespace hearth::train
