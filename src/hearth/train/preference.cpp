#include "hearth/train/preference.h"

#include <fmt/format.h>

#include "hearth/base/error.h"

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

}  // namespace

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
  nn::Pass frozen = pass;
  frozen.training = false;
  frozen.noise.reset();
  frozen.adapters = false;
  const models::Decoder& reference = reference_ ? *reference_ : model;
  const auto before =
      mx::stop_gradient(margins(row_scores(reference, batch, frozen)));
  const auto margin = mx::multiply(
      mx::array(beta_),
      mx::subtract(margins(row_scores(model, batch, pass)), before)
  );
  // -log sigmoid(m) without overflow.
  const auto loss = mx::logaddexp(mx::array(0.0f), mx::negative(margin));
  const auto pairs = mx::array(static_cast<float>(batch.rows) / 2);
  return {mx::sum(loss), pairs};
}

}  // namespace hearth::train
