#pragma once
// How many tokens a micro-batch has, moved by real memory use: a step that took
// less than half of the budget doubles them, one that took more than 80 %
// halves them. Tokens and not rows, so that steps of short rows and of long
// ones take as much memory and products of as many rows. The batch of an update
// stays the same; only how it is cut changes.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::train {

class BatchPolicy {
 public:
  // Between half of base and most, which count rows of the longest length, at
  // least one of them; fixed where pinned.
  BatchPolicy(
      std::uint32_t base,
      std::uint32_t most,
      bool pinned,
      std::uint32_t longest = 1
  );

  std::uint64_t tokens() const { return tokens_; }
  // Rows of that length with about as many tokens; at least one.
  std::uint32_t rows(std::uint32_t length) const;
  // After a step: tokens of the micro-batches it ended with (fewer than it
  // began with when memory ran out), its peak, the budget (0 means none), and
  // its number, for the history.
  void update(
      std::uint64_t tokens,
      std::size_t peak,
      std::size_t budget,
      std::int64_t step = 0
  );

  // Since which step it is so many: the start, then every change.
  struct Change {
    std::int64_t step = 0;
    std::uint64_t tokens = 0;
    bool operator==(const Change&) const = default;
  };
  const std::vector<Change>& history() const { return history_; }

  Json state() const;
  // Tokens of another machine's plan may be more than this one's.
  void restore(const Json& state);
  // Of a run that is cut in another way from this step on: the state's history,
  // then what this has now.
  void take_over(const Json& state, std::int64_t step);

 private:
  std::uint64_t longest_, base_, most_, tokens_;
  std::uint64_t ceiling_;  // what took too much is not tried again
  bool pinned_;
  std::vector<Change> history_;

  std::uint64_t next_tokens(
      std::uint64_t tokens,
      std::size_t peak,
      std::size_t budget
  );
  std::uint64_t whole_rows(std::uint64_t tokens) const;
};

// Rows of that length that hold so many tokens; at least one.
std::uint32_t rows_of(std::uint64_t tokens, std::uint32_t length);

}  // namespace hearth::train
