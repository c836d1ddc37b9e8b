#include "hearth/infer/grammar/completions.h"

#include <unordered_map>

namespace hearth::infer::grammar {
namespace {

using Leaving = Completions::Leaving;

bool every_byte_is_a_token(
    const Automaton& automaton,
    const GrammarVocabulary& vocabulary
) {
  for (std::size_t s = 0; s < automaton.size(); ++s) {
    for (const ByteEdge& edge : automaton.bytes(static_cast<StateId>(s))) {
      if (!vocabulary.has_bytes(edge.first, edge.last)) return false;
    }
  }
  return true;
}

// A state with how far a token has come: a node of the tree of tokens, the
// root between two of them. Which of these pairs lead out of the state's rule
// is the least answer that agrees with where each leads.
class Solver {
 public:
  // More pairs than these are not looked at.
  static constexpr std::size_t kMostPairs = std::size_t{1} << 22;

  Solver(const Automaton& automaton, const GrammarVocabulary& tokens)
      : automaton_(automaton), tokens_(tokens) {}

  std::vector<Leaving> solve() {
    const std::size_t states = automaton_.size();
    for (std::size_t s = 0; s < states; ++s) {
      pair_of(static_cast<StateId>(s), kRoot);
    }
    for (std::uint32_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_.size() > kMostPairs) return std::vector(states, kUnknown);
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
    return {found_.begin(), found_.begin() + static_cast<long>(states)};
  }

 private:
  static constexpr std::uint32_t kRoot = 0;
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

  // Where a byte leads: into the tree, and to the root where a token ends.
  template <typename Seen>
  void each_after_byte(const Pair& at, const Seen& seen) const {
    const auto nodes = tokens_.nodes();
    for (const ByteEdge& edge : automaton_.bytes(at.state)) {
      const std::uint32_t end = nodes[at.node].end;
      for (std::uint32_t c = at.node + 1; c < end; c = nodes[c].end) {
        if (nodes[c].byte < edge.first || nodes[c].byte > edge.last) continue;
        if (!tokens_.tokens(c).empty()) seen(edge.to, kRoot);
        if (nodes[c].end > c + 1) seen(edge.to, c);
      }
    }
  }

  template <typename Seen>
  void each_next(Pair at, const Seen& seen) const {
    each_after_byte(at, seen);
    for (const StateId to : automaton_.skips(at.state)) seen(to, at.node);
    if (at.node != kRoot) return;
    for (const CallEdge& call : automaton_.calls(at.state)) {
      seen(automaton_.rule(call.rule).start, kRoot);
      seen(call.back, kRoot);
    }
  }

  void update(std::uint32_t i) {
    const Pair at = pairs_[i];
    Leaving now;
    const auto join = [&](const Leaving& other) {
      now.at_end |= other.at_end;
      now.inside |= other.inside;
    };
    if (automaton_.ends_rule(at.state)) {
      (at.node == kRoot ? now.at_end : now.inside) = true;
    }
    each_after_byte(at, [&](StateId state, std::uint32_t node) {
      join(found(state, node));
    });
    for (const StateId to : automaton_.skips(at.state)) {
      join(found(to, at.node));
    }
    for (const CallEdge& call : automaton_.calls(at.state)) {
      if (at.node != kRoot) {
        join(kUnknown);
        continue;
      }
      const Leaving called = found(automaton_.rule(call.rule).start, kRoot);
      if (called.at_end) join(found(call.back, kRoot));
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
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
  std::vector<Pair> pairs_;  // first every state at the root, in order
  std::vector<Leaving> found_;
  std::vector<std::vector<std::uint32_t>> readers_;
  std::vector<std::uint32_t> changed_;
};

}  // namespace

Completions::Completions(
    const Automaton& automaton,
    const GrammarVocabulary& vocabulary
) {
  if (every_byte_is_a_token(automaton, vocabulary)) return;
  leaving_ = Solver(automaton, vocabulary.shortest()).solve();
}

}  // namespace hearth::infer::grammar
