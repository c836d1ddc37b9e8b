#include "hearth/train/batch_policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::train {

BatchPolicy::BatchPolicy(std::uint32_t base, std::uint32_t most, bool pinned)
    : base_(std::max(1U, base)),
      most_(std::max(base_, most)),
      rows_(base_),
      ceiling_(most_),
      pinned_(pinned),
      history_{{0, base_}} {}

void BatchPolicy::update(
    std::uint32_t rows,
    std::size_t peak,
    std::size_t budget,
    std::int64_t step
) {
  const std::uint32_t next = next_rows(rows, peak, budget);
  if (next == rows_) return;
  rows_ = next;
  history_.push_back({step, rows_});
}

std::uint32_t BatchPolicy::next_rows(
    std::uint32_t rows,
    std::size_t peak,
    std::size_t budget
) {
  if (rows < rows_) {
    ceiling_ = rows;
    return rows;
  }
  if (pinned_ || budget == 0) return rows_;
  const double share = static_cast<double>(peak) / static_cast<double>(budget);
  const std::uint32_t lowest = std::max(1U, base_ / 2);
  if (share < 0.5) {
    return std::min({rows_ * 2, most_, std::max(ceiling_, rows_)});
  }
  if (share <= 0.8) return rows_;
  const std::uint32_t fewer = std::max(std::min(rows_, lowest), rows_ / 2);
  ceiling_ = std::min(ceiling_, fewer);
  return fewer;
}

Json BatchPolicy::state() const {
  Json history = Json::array();
  for (const Change& c : history_) history.push_back({c.step, c.rows});
  return {{"rows", rows_}, {"ceiling", ceiling_}, {"history", history}};
}

void BatchPolicy::restore(const Json& state) {
  try {
    rows_ = std::clamp(state.at("rows").get<std::uint32_t>(), 1U, most_);
    ceiling_ = std::max(1U, state.at("ceiling").get<std::uint32_t>());
    history_.clear();
    for (const Json& c : state.value("history", Json::array())) {
      history_.push_back(
          {c.at(0).get<std::int64_t>(), c.at(1).get<std::uint32_t>()}
      );
    }
  } catch (const Json::exception& e) {
    throw FormatError(
        fmt::format("[train.BatchPolicy] no state of this kind: {}", e.what())
    );
  }
}

}  // namespace hearth::train
