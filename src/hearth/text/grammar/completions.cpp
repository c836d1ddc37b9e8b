#include "hearth/text/grammar/completions.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hearth::text::grammar {
namespace {

using Leaving = Completions::Leaving;

// Whether from every state that a text may reach, the end of its rule can be
// reached by tokens of one byte. Then whatever is begun can be finished, though
// some bytes may be no tokens. Most vocabularies lack bytes that few texts
// have; this costs little, and what it cannot tell is told by pairs.
class SingleBytes {
 public:
  SingleBytes(
      const Automaton& automaton,
      const GrammarVocabulary& tokens,
      Effort& effort
  )
      : automaton_(automaton), states_(automaton.size()) {
    effort.spend(states_ * kUnitsPerState);
    for (std::size_t s = 0; s < states_; ++s) {
      const auto state = static_cast<StateId>(s);
      const Automaton::Row row = automaton.row(state);
      for (const ByteEdge edge : automaton.bytes(row)) {
        add(state, edge.to, tokens.has_any_byte(edge.first, edge.last));
      }
      for (const StateId to : automaton.skips(row)) {
        add(state, automaton.uncounted(to), true);
      }
      for (const CallEdge call : automaton.calls(row)) {
        calls_.push_back({state, automaton.rule(call.rule).start, call.back});
      }
    }
    for (const Automaton::Loop& loop : automaton.loops()) {
      const StateId next = loop.first + loop.size;
      add(next, loop.first, true);
      add(next, loop.to, true);
      if (loop.min == 0) add(loop.first, loop.to, true);
    }
    effort.spend((ways_.size() + calls_.size()) * kUnitsPerState);
  }

  bool always_lead_out() {
    const std::vector<bool> out = lead_out();
    std::vector<bool> seen(states_);
    std::vector<StateId> work;
    const auto reach = [&](StateId state) {
      if (seen[at(state)]) return;
      seen[at(state)] = true;
      work.push_back(state);
    };
    const auto from = [](const Way& a, const Way& b) {
      return a.from < b.from;
    };
    std::sort(ways_.begin(), ways_.end(), from);
    std::sort(calls_.begin(), calls_.end(), [](const Call& a, const Call& b) {
      return a.from < b.from;
    });
    reach(automaton_.rule(automaton_.root()).start);
    while (!work.empty()) {
      const StateId state = work.back();
      work.pop_back();
      if (!out[at(state)] && state != Automaton::kDone) return false;
      const auto [way, last] = std::equal_range(
          ways_.begin(), ways_.end(), Way{state, 0, false}, from
      );
      for (auto i = way; i != last; ++i) reach(i->to);
      auto call = std::lower_bound(
          calls_.begin(), calls_.end(), state,
          [](const Call& a, StateId s) { return a.from < s; }
      );
      for (; call != calls_.end() && call->from == state; ++call) {
        reach(call->start);
        reach(call->back);
      }
    }
    return true;
  }

 private:
  static constexpr std::uint64_t kUnitsPerState = 2;
  struct Way {
    StateId from, to;
    bool open;  // by a token of one byte, or by none
  };
  struct Call {
    StateId from, start, back;
  };

  static std::size_t at(StateId state) {
    return static_cast<std::size_t>(state);
  }
  void add(StateId from, StateId to, bool open) {
    ways_.push_back({from, to, open});
  }

  // The states that reach the end of their rule that way.
  std::vector<bool> lead_out() {
    std::sort(ways_.begin(), ways_.end(), [](const Way& a, const Way& b) {
      return a.to < b.to;
    });
    // Calls by where they begin and by where they go on.
    std::vector<std::pair<StateId, std::size_t>> waits;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      waits.emplace_back(calls_[i].start, i);
      waits.emplace_back(calls_[i].back, i);
    }
    std::sort(waits.begin(), waits.end());
    std::vector<bool> out(states_);
    std::vector<StateId> work;
    const auto lead = [&](StateId state) {
      if (out[at(state)]) return;
      out[at(state)] = true;
      work.push_back(state);
    };
    for (std::size_t s = 0; s < states_; ++s) {
      const auto state = static_cast<StateId>(s);
      if (automaton_.ends_rule(automaton_.row(state))) lead(state);
    }
    while (!work.empty()) {
      const StateId state = work.back();
      work.pop_back();
      auto way = std::lower_bound(
          ways_.begin(), ways_.end(), state,
          [](const Way& a, StateId s) { return a.to < s; }
      );
      for (; way != ways_.end() && way->to == state; ++way) {
        if (way->open) lead(way->from);
      }
      auto wait = std::lower_bound(
          waits.begin(), waits.end(), std::pair{state, std::size_t{0}}
      );
      for (; wait != waits.end() && wait->first == state; ++wait) {
        const Call& call = calls_[wait->second];
        if (out[at(call.start)] && out[at(call.back)]) lead(call.from);
      }
    }
    return out;
  }

  const Automaton& automaton_;
  std::size_t states_;
  std::vector<Way> ways_;
  std::vector<Call> calls_;
};

// A state with how far a token has come: a node of the tree of tokens, the
// root between two of them. Which of these pairs lead out of the state's rule
// is the least answer that agrees with where each leads. Counts are not looked
// at: a counted part may be left each time it was read.
class Solver {
 public:
  // The most pairs that are examined.
  static constexpr std::size_t kMostPairs = std::size_t{1} << 20;

  Solver(
      const Automaton& automaton,
      const GrammarVocabulary& tokens,
      Effort& effort
  )
      : automaton_(automaton), tokens_(tokens), effort_(effort) {}

  // What leaves the tree from states at the root; nothing where there were too
  // many pairs.
  std::unordered_map<StateId, Leaving> solve() {
    const std::size_t states = automaton_.size();
    for (std::size_t s = 0; s < states; ++s) {
      pair_of(static_cast<StateId>(s), kRoot);
    }
    for (std::uint32_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_.size() > kMostPairs) return {};
      effort_.spend(kUnitsPerPair);
      each_next(pairs_[i], [&](StateId state, std::uint32_t node) {
        const std::uint32_t next = pair_of(state, node);
        readers_[next].push_back(i);
      });
    }
    for (std::uint32_t i = 0; i < pairs_.size(); ++i) changed_.push_back(i);
    while (!changed_.empty()) {
      const std::uint32_t i = changed_.back();
      changed_.pop_back();
      update(i);
    }
    std::unordered_map<StateId, Leaving> result;
    for (std::uint32_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_[i].node == kRoot) result.emplace(pairs_[i].state, found_[i]);
    }
    return result;
  }

 private:
  static constexpr std::uint32_t kRoot = 0;
  static constexpr std::uint64_t kUnitsPerPair = 16;
  static constexpr Leaving kUnknown{true, true};

  struct Pair {
    StateId state;
    std::uint32_t node;
  };

  std::uint32_t pair_of(StateId state, std::uint32_t node) {
    const auto key =
        (static_cast<std::uint64_t>(static_cast<std::uint32_t>(state)) << 32) |
        node;
    const auto next = static_cast<std::uint32_t>(pairs_.size());
    const auto [at, fresh] = index_.emplace(key, next);
    if (fresh) {
      pairs_.push_back({state, node});
      found_.emplace_back();
      readers_.emplace_back();
    }
    return at->second;
  }
  const Leaving& found(StateId state, std::uint32_t node) {
    return found_[pair_of(state, node)];
  }

  // The states that a byte leads to: into the tree of tokens, and back to its
  // root where a token ends.
  template <typename Seen>
  void each_after_byte(const Pair& at, const Seen& seen) const {
    const auto nodes = tokens_.nodes();
    for (const ByteEdge edge : automaton_.bytes(automaton_.row(at.state))) {
      const std::uint32_t end = nodes[at.node].end;
      for (std::uint32_t c = at.node + 1; c < end; c = nodes[c].end) {
        if (nodes[c].byte < edge.first || nodes[c].byte > edge.last) continue;
        const StateId to = automaton_.uncounted(edge.to);
        if (!tokens_.tokens(c).empty()) seen(to, kRoot);
        if (nodes[c].end > c + 1) seen(to, c);
      }
    }
  }

  template <typename Seen>
  void each_skip(StateId state, const Seen& seen) const {
    for (const StateId to : automaton_.skips(automaton_.row(state))) {
      seen(automaton_.uncounted(to));
    }
    const StateId out = automaton_.way_out(state);
    if (out >= 0) seen(out);
    const StateId again = begins_again(state);
    if (again >= 0) seen(again);
  }

  // Where a counted part that was read is read once more; -1 elsewhere.
  StateId begins_again(StateId state) const {
    const auto loops = automaton_.loops();
    const auto behind = std::upper_bound(
        loops.begin(), loops.end(), state,
        [](StateId at, const Automaton::Loop& loop) { return at < loop.first; }
    );
    if (behind == loops.begin()) return -1;
    const Automaton::Loop& loop = *std::prev(behind);
    return state == loop.first + loop.size ? loop.first : -1;
  }

  template <typename Seen>
  void each_next(Pair at, const Seen& seen) const {
    each_after_byte(at, seen);
    each_skip(at.state, [&](StateId to) { seen(to, at.node); });
    if (at.node != kRoot) return;
    for (const CallEdge call : automaton_.calls(automaton_.row(at.state))) {
      seen(automaton_.rule(call.rule).start, kRoot);
      seen(automaton_.uncounted(call.back), kRoot);
    }
  }

  void update(std::uint32_t i) {
    const Pair at = pairs_[i];
    Leaving now;
    const auto join = [&](const Leaving& other) {
      now.at_end |= other.at_end;
      now.inside |= other.inside;
    };
    const Automaton::Row row = automaton_.row(at.state);
    effort_.spend(kUnitsPerPair);
    if (automaton_.ends_rule(row)) {
      (at.node == kRoot ? now.at_end : now.inside) = true;
    }
    each_after_byte(at, [&](StateId state, std::uint32_t node) {
      join(found(state, node));
    });
    each_skip(at.state, [&](StateId to) { join(found(to, at.node)); });
    for (const CallEdge call : automaton_.calls(row)) {
      if (at.node != kRoot) {
        join(kUnknown);
        continue;
      }
      const Leaving called = found(automaton_.rule(call.rule).start, kRoot);
      if (called.at_end) join(found(automaton_.uncounted(call.back), kRoot));
      now.inside |= called.inside;
    }
    if (now.at_end == found_[i].at_end && now.inside == found_[i].inside) {
      return;
    }
    found_[i] = now;
    changed_.insert(changed_.end(), readers_[i].begin(), readers_[i].end());
  }

  const Automaton& automaton_;
  const GrammarVocabulary& tokens_;
  Effort& effort_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
  // First every state at the root, then whatever these lead to.
  std::vector<Pair> pairs_;
  std::vector<Leaving> found_;
  std::vector<std::vector<std::uint32_t>> readers_;
  std::vector<std::uint32_t> changed_;
};

}  // namespace

Completions::Completions(
    const Automaton& automaton,
    const GrammarVocabulary& vocabulary,
    Effort& effort
)
    : always_(SingleBytes(automaton, vocabulary, effort).always_lead_out()) {
  if (always_) return;
  leaving_ = Solver(automaton, vocabulary.shortest(), effort).solve();
}

}  // namespace hearth::text::grammar
