#pragma once
// Rules as one network of states: bytes lead from state to state, a call runs
// another rule and comes back. Every state can still reach the end of its
// rule: what cannot is cut off here, so that a text that has not failed can
// always be finished.
//
// A part that is repeated many times has its edges once. Its states for the
// first, second, ... time are numbers beyond those of all others, and a number
// says which time it is: a bound of 100,000 takes no more room than one of 5.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/text/grammar/expr.h"

namespace hearth::text::grammar {

using StateId = std::int32_t;

struct ByteEdge {
  std::uint8_t first = 0, last = 0;
  StateId to = 0;
};

struct CallEdge {
  std::int32_t rule = 0;
  StateId back = 0;
};

struct RuleEntry {
  StateId start = 0;
  // Rules that may be called before any byte is read have higher ranks than
  // their callers, so that callers can be gone through first.
  std::int32_t rank = 0;
  bool may_be_empty = false;
};

inline ByteEdge shifted(ByteEdge edge, StateId by) {
  edge.to += by;
  return edge;
}
inline CallEdge shifted(CallEdge edge, StateId by) {
  edge.back += by;
  return edge;
}
inline StateId shifted(StateId state, StateId by) {
  return state + by;
}

// Edges as they are of one of the times that they stand for.
template <typename Edge>
class Edges {
 public:
  class Iterator {
   public:
    Iterator(const Edge* at, StateId shift) : at_(at), shift_(shift) {}
    Edge operator*() const { return shifted(*at_, shift_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const Edge* at_;
    StateId shift_;
  };

  Edges(std::span<const Edge> edges, StateId shift)
      : edges_(edges), shift_(shift) {}
  Iterator begin() const { return {edges_.data(), shift_}; }
  Iterator end() const { return {edges_.data() + edges_.size(), shift_}; }
  bool empty() const { return edges_.empty(); }
  std::size_t size() const { return edges_.size(); }

 private:
  std::span<const Edge> edges_;
  StateId shift_;
};

class Automaton {
 public:
  // The end of the whole text; nothing leaves it.
  static constexpr StateId kDone = 0;
  // The most states with edges of their own, and the most states in all.
  static constexpr std::size_t kMaxStates = std::size_t{1} << 18;
  static constexpr std::int64_t kMaxNumbers = std::int64_t{1} << 30;

  // Throws UsageError, begun with `who`: a rule that calls itself before it
  // reads a byte, rules that no finite text satisfies, too many states.
  Automaton(const Rules& rules, const std::string& who, Effort& effort);

  // The range of a state's edges.
  struct Row {
    StateId at = 0;
    StateId shift = 0;
    StateId out = -1;  // it leads there as well, without a byte
  };
  Row row(StateId state) const {
    return state < first_number_ ? Row{state, 0, -1} : counted_row(state);
  }
  Edges<ByteEdge> bytes(Row row) const {
    return {part(bytes_, byte_begin_, row.at), row.shift};
  }
  Edges<CallEdge> calls(Row row) const {
    return {part(calls_, call_begin_, row.at), row.shift};
  }
  // States reached without a byte; and row.out.
  Edges<StateId> skips(Row row) const {
    return {part(skips_, skip_begin_, row.at), row.shift};
  }
  bool ends_rule(Row row) const {
    return ends_[static_cast<std::size_t>(row.at)] != 0;
  }
  // Whether the state ends its rule and leads nowhere else.
  bool only_ends(StateId state) const {
    const Row at = row(state);
    return ends_rule(at) && bytes(at).empty() && calls(at).empty() &&
           skips(at).empty();
  }
  // States with edges of their own: every edge leaves one of them.
  std::size_t size() const { return ends_.size(); }

  // A state from which exactly the same texts of up to `bytes` bytes lead on,
  // however often its part was repeated before: where no bound is near.
  StateId like(StateId state, std::size_t bytes) const;

  // A part that is counted: the states of its nth time begin at the number
  // begin + n * size, and have the edges of first, first + 1, ...; the state
  // first + size stands for the first of the next time.
  struct Loop {
    StateId begin = 0, first = 0, size = 0, to = 0;
    std::int32_t min = 0, max = 0;
    bool may_be_empty = false;
  };
  std::span<const Loop> loops() const { return loops_; }
  // The same state with edges of its own, whichever time it is: the first of
  // any time but the first is the one that stands for the next.
  StateId uncounted(StateId state) const;
  // Where a counted part may be left from such a state; -1: it may not.
  StateId way_out(StateId uncounted) const;

  const RuleEntry& rule(std::int32_t id) const {
    return rules_[static_cast<std::size_t>(id)];
  }
  std::int32_t root() const { return root_; }

  // Bytes that no state tells apart share a class.
  std::uint8_t byte_class(std::uint8_t byte) const { return classes_[byte]; }
  std::size_t class_count() const { return class_count_; }

 private:
  template <typename Edge>
  std::span<const Edge> part(
      const std::vector<Edge>& edges,
      const std::vector<std::uint32_t>& begin,
      StateId state
  ) const {
    const auto at = static_cast<std::size_t>(state);
    return std::span(edges).subspan(begin[at], begin[at + 1] - begin[at]);
  }
  const Loop& loop_of(StateId number) const;
  // The one that has this state, which has edges of its own; null: none.
  const Loop* loop_with(StateId state) const;
  Row counted_row(StateId number) const;
  void set_classes();

  std::vector<Loop> loops_;
  StateId first_number_ = 0;
  std::vector<ByteEdge> bytes_;
  std::vector<CallEdge> calls_;
  std::vector<StateId> skips_;
  std::vector<std::uint32_t> byte_begin_, call_begin_, skip_begin_;
  std::vector<std::uint8_t> ends_;
  std::vector<RuleEntry> rules_;
  std::int32_t root_ = 0;
  std::array<std::uint8_t, 256> classes_{};
  std::size_t class_count_ = 0;
};

}  // namespace hearth::text::grammar
