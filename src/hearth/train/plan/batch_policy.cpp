#include "hearth/train/plan/batch_policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::train {

std::uint32_t rows_of(std::uint64_t tokens, std::uint32_t length) {
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, tokens / std::max(1U, length))
  );
}

BatchPolicy::BatchPolicy(
    std::uint32_t base,
    std::uint32_t most,
    bool pinned,
    std::uint32_t longest
)
    : longest_(std::max(1U, longest)),
      base_(std::max(1U, base) * longest_),
      most_(std::max(base_, most * longest_)),
      tokens_(base_),
      ceiling_(most_),
      pinned_(pinned),
      history_{{0, base_}} {}

std::uint32_t BatchPolicy::rows(std::uint32_t length) const {
  return rows_of(tokens_, length);
}

void BatchPolicy::update(
    std::uint64_t tokens,
    std::size_t peak,
    std::size_t budget,
    std::int64_t step
) {
  const std::uint64_t next = next_tokens(tokens, peak, budget);
  if (next == tokens_) return;
  tokens_ = next;
  history_.push_back({step, tokens_});
}

// So that the longest rows have as many as the others.
std::uint64_t BatchPolicy::whole_rows(std::uint64_t tokens) const {
  return tokens > longest_ ? tokens - tokens % longest_ : tokens;
}

std::uint64_t BatchPolicy::next_tokens(
    std::uint64_t tokens,
    std::size_t peak,
    std::size_t budget
) {
  if (tokens < tokens_) {
    ceiling_ = tokens;
    return tokens;
  }
  if (pinned_ || budget == 0) return tokens_;
  const double share = static_cast<double>(peak) / static_cast<double>(budget);
  if (share < 0.5) {
    return std::min({tokens_ * 2, most_, std::max(ceiling_, tokens_)});
  }
  if (share <= 0.8) return tokens_;
  const std::uint64_t lowest = std::max(longest_, whole_rows(base_ / 2));
  const std::uint64_t fewer =
      std::max(std::min(tokens_, lowest), whole_rows(tokens_ / 2));
  ceiling_ = std::min(ceiling_, fewer);
  return fewer;
}

Json BatchPolicy::state() const {
  Json history = Json::array();
  for (const Change& c : history_) history.push_back({c.step, c.tokens});
  return {{"tokens", tokens_}, {"ceiling", ceiling_}, {"history", history}};
}

void BatchPolicy::restore(const Json& state) {
  try {
    // Earlier versions counted rows.
    const bool rows = !state.contains("tokens");
    const std::uint64_t unit = rows ? longest_ : 1;
    const auto tokens = state.at(rows ? "rows" : "tokens").get<std::uint64_t>();
    const auto ceiling = state.at("ceiling").get<std::uint64_t>();
    std::vector<Change> history;
    for (const Json& c : state.value("history", Json::array())) {
      history.push_back(
          {c.at(0).get<std::int64_t>(), unit * c.at(1).get<std::uint64_t>()}
      );
    }
    tokens_ = std::clamp<std::uint64_t>(unit * tokens, 1, most_);
    ceiling_ = std::max<std::uint64_t>(1, unit * ceiling);
    history_ = std::move(history);
  } catch (const Json::exception& e) {
    throw FormatError(
        fmt::format("[train.BatchPolicy] no state of this kind: {}", e.what())
    );
  }
}

void BatchPolicy::take_over(const Json& state, std::int64_t step) {
  BatchPolicy before = *this;
  before.restore(state);
  before.history_.push_back({step, tokens_});
  history_ = std::move(before.history_);
}

}  // namespace hearth::train
