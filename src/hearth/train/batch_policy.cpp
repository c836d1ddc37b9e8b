#include "hearth/train/batch_policy.h"

#include <algorithm>

#include "hearth/base/error.h"

namespace hearth::train {

BatchPolicy::BatchPolicy(std::uint32_t base, std::uint32_t most, bool pinned)
    : base_(std::max(1U, base)),
      most_(std::max(base_, most)),
      rows_(base_),
      ceiling_(most_),
      pinned_(pinned) {}

void BatchPolicy::update(
    std::uint32_t rows,
    std::size_t peak,
    std::size_t budget
) {
  if (rows < rows_) {
    ceiling_ = rows;
    rows_ = rows;
    return;
  }
  if (pinned_ || budget == 0) return;
  const double share = static_cast<double>(peak) / static_cast<double>(budget);
  const std::uint32_t lowest = std::max(1U, base_ / 2);
  if (share < 0.5) {
    rows_ = std::min({rows_ * 2, most_, std::max(ceiling_, rows_)});
  } else if (share > 0.8) {
    rows_ = std::max(std::min(rows_, lowest), rows_ / 2);
    ceiling_ = std::min(ceiling_, rows_);
  }
}

Json BatchPolicy::state() const {
  return {{"rows", rows_}, {"ceiling", ceiling_}};
}

void BatchPolicy::restore(const Json& state) {
  if (!state.is_object() || !state.contains("rows") ||
      !state["rows"].is_number_unsigned() ||
      !state["ceiling"].is_number_unsigned()) {
    throw FormatError("[train.BatchPolicy] the state must have rows, ceiling");
  }
  rows_ = std::clamp(state["rows"].get<std::uint32_t>(), 1U, most_);
  ceiling_ = std::max(1U, state["ceiling"].get<std::uint32_t>());
}

}  // namespace hearth::train
