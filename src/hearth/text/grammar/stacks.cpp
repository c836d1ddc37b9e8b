#include "hearth/text/grammar/stacks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::text::grammar {
namespace {

std::size_t hash_of(std::span<const Place> places) {
  std::uint64_t hash = 0x9E3779B97F4A7C15U;
  for (const Place& place : places) {
    hash ^= (static_cast<std::uint64_t>(static_cast<std::uint32_t>(place.state))
             << 32) |
            static_cast<std::uint32_t>(place.below);
    hash *= 0xBF58476D1CE4E5B9U;
    hash ^= hash >> 29;
  }
  return hash;
}

void sort_unique(std::vector<Place>& places) {
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
}

}  // namespace

Stacks::Stacks(const Automaton& automaton, const Completions* completions)
    : automaton_(&automaton),
      completions_(completions),
      classes_(automaton.class_count()) {
  std::vector<Place> none, end{{Automaton::kDone, 0}};
  intern_node(none);
  intern_node(end);
  intern_set(none);
  intern_set(end);
}

// What `begin` adds, and whatever skips, returns and calls lead to from there.
// A rule is entered once all its callers are known: they have lower ranks.
template <typename Begin>
SetId Stacks::closed(const Begin& begin) {
  try {
    begin();
    while (true) {
      while (!work_.empty()) {
        const Place place = work_.back();
        work_.pop_back();
        visit(place);
        if (seen_.size() > kMaxPlaces) {
          throw UsageError(
              fmt::format(
                  "[infer.grammar] a text must stand at {} places of its "
                  "grammar at most: it is too ambiguous",
                  kMaxPlaces
              )
          );
        }
      }
      if (calls_.empty()) break;
      auto call = calls_.extract(calls_.begin());
      auto& [rule, callers] = call.mapped();
      add({automaton_->rule(rule).start, intern_node(callers)});
    }
  } catch (...) {
    work_.clear(), kept_.clear(), seen_.clear(), calls_.clear();
    throw;
  }
  seen_.clear();
  const SetId set = intern_set(kept_);
  kept_.clear();
  return set;
}

SetId Stacks::start() {
  return closed([&] {
    add({automaton_->rule(automaton_->root()).start, kBottom});
  });
}

SetId Stacks::alone(StateId state) {
  std::vector<Place> one{{state, kBottom}};
  return intern_set(one);
}

SetId Stacks::returns(NodeId below) {
  return closed([&] {
    for (const Place& back : backs(below)) add(back);
  });
}

SetId Stacks::slow_step(SetId set, std::uint8_t byte) {
  const SetId next = closed([&] {
    for (const Place& place : places(set)) {
      for (const ByteEdge edge :
           automaton_->bytes(automaton_->row(place.state))) {
        if (edge.first > byte || byte > edge.last) continue;
        add({edge.to, place.below});
      }
    }
  });
  next_
      [static_cast<std::size_t>(set) * classes_ +
       automaton_->byte_class(byte)] = next;
  return next;
}

void Stacks::add(Place place) {
  const auto key =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(place.state))
       << 32) |
      static_cast<std::uint32_t>(place.below);
  if (!seen_.insert(key).second) return;
  work_.push_back(place);
  spend(1);
}

void Stacks::visit(Place place) {
  const Automaton::Row row = automaton_->row(place.state);
  std::uint64_t looked_at = 0;
  if (place.state == Automaton::kDone || !automaton_->bytes(row).empty()) {
    kept_.push_back(place);
  }
  for (const StateId next : automaton_->skips(row)) add({next, place.below});
  if (row.out >= 0) add({row.out, place.below});
  if (automaton_->ends_rule(row)) {
    for (const Place& back : backs(place.below)) add(back);
    looked_at += backs(place.below).size();
  }
  for (const CallEdge call : automaton_->calls(row)) {
    const RuleEntry& rule = automaton_->rule(call.rule);
    auto& [id, callers] = calls_[rule.rank];
    id = call.rule;
    // A call that is the last thing a rule does goes back to where the rule
    // itself would: lists written by recursion stay flat.
    if (automaton_->only_ends(call.back)) {
      const auto ways = backs(place.below);
      callers.insert(callers.end(), ways.begin(), ways.end());
      looked_at += ways.size();
    } else {
      callers.push_back({call.back, place.below});
    }
    if (rule.may_be_empty) add({call.back, place.below});
  }
  spend(looked_at);
}

NodeId Stacks::intern_node(std::vector<Place>& ways) {
  sort_unique(ways);
  const std::size_t hash = hash_of(ways);
  const auto [first, last] = node_index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (std::ranges::equal(backs(it->second), ways)) return it->second;
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(
      {static_cast<std::uint32_t>(backs_.size()),
       static_cast<std::uint32_t>(ways.size())}
  );
  backs_.insert(backs_.end(), ways.begin(), ways.end());
  node_index_.emplace(hash, id);
  return id;
}

SetId Stacks::intern_set(std::vector<Place>& set) {
  sort_unique(set);
  const std::size_t hash = hash_of(set);
  const auto [first, last] = set_index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (std::ranges::equal(places(it->second), set)) return it->second;
  }
  const auto id = static_cast<SetId>(sets_.size());
  sets_.push_back(
      {static_cast<std::uint32_t>(places_.size()),
       static_cast<std::uint32_t>(set.size())}
  );
  places_.insert(places_.end(), set.begin(), set.end());
  next_.resize(next_.size() + classes_, -1);
  set_index_.emplace(hash, id);
  return id;
}

// The stack below this place has been examined.
bool Stacks::leads_out(const Place& place) const {
  if (place.state == Automaton::kDone) return true;
  const Completions::Leaving way =
      completions_->leaving(automaton_->uncounted(place.state));
  if (way.at_end && node_finishes_[static_cast<std::size_t>(place.below)]) {
    return true;
  }
  // A text cannot end inside a token.
  return way.inside && place.below != kBottom;
}

bool Stacks::can_finish(SetId set) {
  if (completions_ == nullptr) return true;
  // Nodes are made after those they lead back to.
  while (node_finishes_.size() < nodes_.size()) {
    const auto node = static_cast<NodeId>(node_finishes_.size());
    node_finishes_.push_back(
        std::ranges::any_of(backs(node), [&](const Place& back) {
          return leads_out(back);
        })
    );
  }
  return std::ranges::any_of(places(set), [&](const Place& place) {
    return leads_out(place);
  });
}

std::size_t Stacks::bytes() const {
  constexpr std::size_t kIndexEntry = 40;
  return next_.size() * sizeof(SetId) +
         (places_.size() + backs_.size()) * sizeof(Place) +
         (sets_.size() + nodes_.size()) * (sizeof(Slice) + kIndexEntry);
}

SetId Stacks::copy_into(SetId set, Stacks& other) const {
  std::unordered_map<NodeId, NodeId> copied{{0, 0}, {kBottom, kBottom}};
  std::vector<Place> made;
  for (const Place& place : places(set)) {
    made.push_back({place.state, copy_node(place.below, other, copied)});
  }
  return other.intern_set(made);
}

NodeId Stacks::copy_node(
    NodeId node,
    Stacks& other,
    std::unordered_map<NodeId, NodeId>& copied
) const {
  // Deep stacks are the rule in nested texts, so this does not recurse.
  std::vector<NodeId> work{node};
  while (!work.empty()) {
    const NodeId top = work.back();
    if (copied.contains(top)) {
      work.pop_back();
      continue;
    }
    const std::size_t before = work.size();
    std::vector<Place> made;
    for (const Place& back : backs(top)) {
      const auto found = copied.find(back.below);
      if (found == copied.end()) {
        work.push_back(back.below);
      } else {
        made.push_back({back.state, found->second});
      }
    }
    if (work.size() == before) copied[top] = other.intern_node(made);
  }
  return copied[node];
}

}  // namespace hearth::text::grammar
