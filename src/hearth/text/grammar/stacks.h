#pragma once
// Where a text may stand in an automaton: a set of places, each a state with
// the stack of states to come back to. Stacks share their lower parts, sets
// and stacks that are equal are one, and every step taken is remembered, so
// that a text walks an automaton that is made deterministic where it is used.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/text/grammar/automaton.h"
#include "hearth/text/grammar/completions.h"

namespace hearth::text::grammar {

using NodeId = std::int32_t;
using SetId = std::int32_t;

// A state and what lies below it; also a way back: the state to go on from
// and what lies below that.
struct Place {
  StateId state = 0;
  NodeId below = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// Not for several threads at once.
class Stacks {
 public:
  static constexpr SetId kDead = 0;      // no place is left
  static constexpr SetId kFinished = 1;  // the end and nothing else
  static constexpr NodeId kBottom = 1;   // comes back to the end
  // More places at once than this is an ambiguity nobody meant.
  static constexpr std::size_t kMaxPlaces = 20000;

  // Both must outlive it. completions may be null: then what lives can be
  // finished.
  explicit Stacks(
      const Automaton& automaton,
      const Completions* completions = nullptr
  );
  // An empty one of the same; what it does counts where this one's does.
  std::unique_ptr<Stacks> fresh() const {
    auto made = std::make_unique<Stacks>(*automaton_, completions_);
    made->effort_ = effort_;
    return made;
  }

  // The places looked at from now on count there; null: nowhere.
  void charge(Effort* effort) { effort_ = effort; }
  Effort* effort() const { return effort_; }
  void spend(std::uint64_t places) {
    if (effort_ != nullptr) effort_->spend(places);
  }

  // The set of places before the first byte.
  SetId start();
  // One place whose rule comes back to the end; `state` reads bytes.
  SetId alone(StateId state);
  // All places that those who wait below go on from.
  SetId returns(NodeId below);
  SetId step(SetId set, std::uint8_t byte) {
    SetId& next = next_
        [static_cast<std::size_t>(set) * classes_ +
         automaton_->byte_class(byte)];
    return next >= 0 ? next : slow_step(set, byte);
  }
  bool may_end(SetId set) const {
    const auto& at = sets_[static_cast<std::size_t>(set)];
    return at.size > 0 && places_[at.begin].state == Automaton::kDone;
  }
  std::span<const Place> places(SetId set) const {
    const auto& at = sets_[static_cast<std::size_t>(set)];
    return std::span(places_).subspan(at.begin, at.size);
  }

  // Whether a text that stands there at the end of a token can be finished.
  bool can_finish(SetId set);

  // The bytes that the table takes; and the same set in another, new table.
  std::size_t bytes() const;
  SetId copy_into(SetId set, Stacks& other) const;

 private:
  struct Slice {
    std::uint32_t begin = 0, size = 0;
  };
  SetId slow_step(SetId set, std::uint8_t byte);
  template <typename Begin>
  SetId closed(const Begin& begin);
  void visit(Place place);
  void add(Place place);
  NodeId intern_node(std::vector<Place>& backs);
  SetId intern_set(std::vector<Place>& places);
  std::span<const Place> backs(NodeId node) const {
    const auto& at = nodes_[static_cast<std::size_t>(node)];
    return std::span(backs_).subspan(at.begin, at.size);
  }
  NodeId copy_node(
      NodeId node,
      Stacks& other,
      std::unordered_map<NodeId, NodeId>& copied
  ) const;

  bool leads_out(const Place& place) const;

  const Automaton* automaton_;
  const Completions* completions_;
  std::size_t classes_;
  Effort* effort_ = nullptr;
  std::vector<Slice> nodes_, sets_;
  std::vector<Place> backs_, places_;
  std::vector<bool> node_finishes_;  // of nodes looked at, from the first on
  std::vector<SetId> next_;  // by set and class of byte; -1: not yet known
  std::unordered_multimap<std::size_t, std::int32_t> node_index_, set_index_;
  // While a set is made.
  std::vector<Place> work_, kept_;
  std::unordered_set<std::uint64_t> seen_;
  std::map<std::int32_t, std::pair<std::int32_t, std::vector<Place>>> calls_;
};

}  // namespace hearth::text::grammar
