#pragma once
// Which tokens a state of the automaton lets pass, whatever lies below it.
// Tokens that outlive the rule of the state depend on what does lie below:
// they are left as places in the vocabulary's tree to go on from. What is
// known of a state serves every text of the grammar.
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "hearth/text/grammar/stacks.h"
#include "hearth/text/grammar/token_set.h"
#include "hearth/text/grammar/vocabulary.h"

namespace hearth::text::grammar {

// When stacks take more than this, they are made anew from what is still
// needed.
constexpr std::size_t kMaxStackBytes = std::size_t{16} << 20;

class StateMask {
 public:
  StateMask(const TokenSet& tokens, std::vector<std::uint32_t> open);

  void add_to(TokenSet& tokens) const;
  // Nodes of the vocabulary's tree at which the rule may have ended.
  const std::vector<std::uint32_t>& open() const { return open_; }
  std::size_t bytes() const;

 private:
  // Most states allow few tokens or nearly all: those are lists.
  enum class Form : unsigned char { some, all_but, bits };
  Form form_;
  std::vector<std::int32_t> ids_;
  std::unique_ptr<const TokenSet> bits_;
  std::vector<std::uint32_t> open_;
};

// The masks of one grammar and one vocabulary. Several threads may use them,
// and none waits while another makes one.
class StateMasks {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{32} << 20;

  StateMasks(
      const Automaton& automaton,
      const GrammarVocabulary& vocabulary,
      Effort& effort
  );
  // Making one that is not known yet is charged to the effort.
  std::shared_ptr<const StateMask> of(StateId state, Effort* effort);
  // Null where every text can be finished.
  const Completions* completions() const {
    return completions_.always() ? nullptr : &completions_;
  }

 private:
  class Borrowed;
  std::shared_ptr<const StateMask> make(
      StateId state,
      std::unique_ptr<Stacks>& stacks
  );

  const Automaton* automaton_;
  const GrammarVocabulary* vocabulary_;
  Completions completions_;
  std::mutex mutex_;
  std::unique_ptr<Stacks> stacks_;  // null while somebody works with them
  std::unordered_map<StateId, std::shared_ptr<const StateMask>> known_;
  std::size_t bytes_ = 0;
};

// Goes through the nodes from `begin` on, path[d] being where the text stands
// after d bytes; seen(node, set) hears of each that lives. Stops at `end`, or
// earlier, at a node that is still to do, when the stacks have grown too large.
template <typename Seen>
std::uint32_t scan(
    const GrammarVocabulary& vocabulary,
    Stacks& stacks,
    std::uint32_t begin,
    std::uint32_t end,
    std::vector<SetId>& path,
    const Seen& seen
) {
  constexpr std::uint32_t kCheckEvery = 128;
  const auto nodes = vocabulary.nodes();
  std::uint32_t left = kCheckEvery;
  std::uint32_t at = begin;
  while (at < end) {
    const GrammarVocabulary::Node& node = nodes[at];
    const SetId set = stacks.step(path[node.depth - std::size_t{1}], node.byte);
    if (set == Stacks::kDead) {
      at = node.end;
    } else {
      path[node.depth] = set;
      seen(at, set);
      at = set == Stacks::kFinished ? node.end : at + 1;
    }
    if (--left == 0) {
      // A step that is remembered costs little beside one that is not.
      stacks.spend(kCheckEvery / 16);
      if (stacks.bytes() > kMaxStackBytes) return at;
      left = kCheckEvery;
    }
  }
  return at;
}

// The whole tree, from `set` on, whatever that takes; `stacks` may be another
// afterwards.
template <typename Seen>
void scan_all(
    const GrammarVocabulary& vocabulary,
    std::unique_ptr<Stacks>& stacks,
    SetId set,
    const Seen& seen
) {
  const auto nodes = vocabulary.nodes();
  const auto end = static_cast<std::uint32_t>(vocabulary.node_count());
  std::vector<SetId> path(vocabulary.max_depth() + 1, Stacks::kDead);
  path[0] = set;
  std::uint32_t at = 1;
  while ((at = scan(vocabulary, *stacks, at, end, path, seen)) < end) {
    auto fresh = stacks->fresh();
    for (std::size_t i = 0; i < nodes[at].depth; ++i) {
      path[i] = stacks->copy_into(path[i], *fresh);
    }
    stacks = std::move(fresh);
  }
}

}  // namespace hearth::text::grammar
