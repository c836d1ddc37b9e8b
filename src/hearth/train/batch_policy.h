#pragma once
// How many rows a micro-batch has, moved by real memory use: a step that took
// less than half of the budget doubles it, one that took more than 80 % halves
// it. The batch of an update stays the same; only how it is cut changes.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::train {

class BatchPolicy {
 public:
  // Between half of base and most; fixed where pinned.
  BatchPolicy(std::uint32_t base, std::uint32_t most, bool pinned);

  std::uint32_t rows() const { return rows_; }
  // After a step: rows it ended with (fewer than it began with when memory ran
  // out), its peak, the budget (0 means none), and its number, for the history.
  void update(
      std::uint32_t rows,
      std::size_t peak,
      std::size_t budget,
      std::int64_t step = 0
  );

  // Since which step so many rows are taken: the start, then every change.
  struct Change {
    std::int64_t step = 0;
    std::uint32_t rows = 0;
    bool operator==(const Change&) const = default;
  };
  const std::vector<Change>& history() const { return history_; }

  Json state() const;
  // Rows of another machine's plan may be more than this one's.
  void restore(const Json& state);

 private:
  std::uint32_t base_, most_, rows_;
  std::uint32_t ceiling_;  // rows that took too much are not tried again
  bool pinned_;
  std::vector<Change> history_;

  std::uint32_t next_rows(
      std::uint32_t rows,
      std::size_t peak,
      std::size_t budget
  );
};

}  // namespace hearth::train
