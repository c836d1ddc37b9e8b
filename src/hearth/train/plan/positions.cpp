#include "hearth/train/plan/positions.h"

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::train {

void check_positions(const Recipe& recipe, const models::DecoderConfig& model) {
  const bool made = recipe.model.from.empty();
  if (model.rope && !made) return;
  const auto length = recipe.longest();
  if (length <= model.max_length) return;
  throw UsageError(
      fmt::format(
          "{} must be at most the model's {} positions{}, got {}",
          recipe.train.seq_lengths.empty() ? "data.length"
                                           : "train.seq_lengths",
          model.max_length, made ? " (model.max_length)" : "", length
      )
  );
}

}  // namespace hearth::train
