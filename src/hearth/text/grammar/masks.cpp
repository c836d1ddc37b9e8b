#include "hearth/text/grammar/masks.h"

#include <utility>

namespace hearth::text::grammar {

StateMask::StateMask(const TokenSet& tokens, std::vector<std::uint32_t> open)
    : open_(std::move(open)) {
  const std::size_t few = tokens.size() / 64;
  const std::size_t count = tokens.count();
  if (count <= few) {
    form_ = Form::some;
    ids_ = tokens.ids();
  } else if (tokens.size() - count <= few) {
    form_ = Form::all_but;
    ids_ = tokens.other_ids();
  } else {
    form_ = Form::bits;
    bits_ = std::make_unique<const TokenSet>(tokens);
  }
  open_.shrink_to_fit();
}

void StateMask::add_to(TokenSet& tokens) const {
  switch (form_) {
    case Form::some:
      for (const std::int32_t id : ids_) tokens.add(id);
      break;
    case Form::all_but:
      tokens.add_all_but(ids_);
      break;
    case Form::bits:
      tokens.add_all(*bits_);
      break;
  }
}

std::size_t StateMask::bytes() const {
  constexpr std::size_t kOverhead = 128;
  return kOverhead + ids_.size() * sizeof(std::int32_t) +
         open_.size() * sizeof(std::uint32_t) + (bits_ ? bits_->size() / 8 : 0);
}

namespace {

// The charge of one caller ends with this object, also where making a mask was
// too much; the next caller charges its own budget.
struct Uncharged {
  std::unique_ptr<Stacks>& stacks;
  ~Uncharged() { stacks->charge(nullptr); }
};

}  // namespace

StateMasks::StateMasks(
    const Automaton& automaton,
    const GrammarVocabulary& vocabulary,
    Effort& effort
)
    : automaton_(&automaton),
      vocabulary_(&vocabulary),
      completions_(automaton, vocabulary, effort),
      stacks_(std::make_unique<Stacks>(automaton)) {}

std::shared_ptr<const StateMask> StateMasks::of(StateId state, Effort* effort) {
  // In a long text most positions are alike, because no token reaches a bound.
  state = automaton_->like(state, vocabulary_->max_depth());
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(state);
  if (found != known_.end()) return found->second;
  if (stacks_->bytes() > kMaxStackBytes) {
    stacks_ = std::make_unique<Stacks>(*automaton_);
  }
  stacks_->charge(effort);
  const Uncharged after{stacks_};
  auto made = make(state);
  if (bytes_ + made->bytes() > kMaxBytes) {
    known_.clear();
    bytes_ = 0;
  }
  bytes_ += made->bytes();
  known_.emplace(state, made);
  return made;
}

std::shared_ptr<const StateMask> StateMasks::make(StateId state) {
  TokenSet tokens(vocabulary_->size());
  std::vector<std::uint32_t> open;
  const auto nodes = vocabulary_->nodes();
  scan_all(
      *vocabulary_, stacks_, stacks_->alone(state),
      [&](std::uint32_t node, SetId set) {
        for (const std::int32_t id : vocabulary_->tokens(node)) tokens.add(id);
        if (nodes[node].end > node + 1 && stacks_->may_end(set)) {
          open.push_back(node);
        }
      }
  );
  return std::make_shared<const StateMask>(tokens, std::move(open));
}

}  // namespace hearth::text::grammar
