#pragma once
// Rules as one network of states: bytes lead from state to state, a call runs
// another rule and comes back. Every state can still reach the end of its
// rule: what cannot is cut off here, so that a text that has not failed can
// always be finished.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hearth/infer/grammar/expr.h"

namespace hearth::infer::grammar {

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

class Automaton {
 public:
  // The end of the whole text; nothing leaves it.
  static constexpr StateId kDone = 0;
  static constexpr std::size_t kMaxStates = std::size_t{1} << 19;

  // Throws UsageError, begun with `who`: a rule that calls itself before it
  // reads a byte, rules that no finite text satisfies, too many states.
  Automaton(const Rules& rules, const std::string& who);

  std::size_t size() const { return ends_.size(); }
  std::span<const ByteEdge> bytes(StateId state) const {
    return part(bytes_, byte_begin_, state);
  }
  std::span<const CallEdge> calls(StateId state) const {
    return part(calls_, call_begin_, state);
  }
  // States reached without a byte.
  std::span<const StateId> skips(StateId state) const {
    return part(skips_, skip_begin_, state);
  }
  bool ends_rule(StateId state) const {
    return ends_[static_cast<std::size_t>(state)] != 0;
  }
  // It ends its rule and leads nowhere else.
  bool only_ends(StateId state) const {
    return ends_rule(state) && bytes(state).empty() && calls(state).empty() &&
           skips(state).empty();
  }
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
  void set_classes();

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

}  // namespace hearth::infer::grammar
