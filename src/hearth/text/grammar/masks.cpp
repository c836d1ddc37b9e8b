#include "hearth/text/grammar/masks.h"

#include <utility>

#include "hearth/text/grammar/reserve.h"

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

StateMasks::StateMasks(
    const Automaton& automaton,
    const GrammarVocabulary& vocabulary,
    Effort& effort
)
    : automaton_(&automaton),
      vocabulary_(&vocabulary),
      completions_(automaton, vocabulary, effort),
      stacks_(std::make_unique<Stacks>(automaton)) {}

// The stacks of all for one caller, or new ones where another has them. They
// are given back also where making a mask was too much: the next one finds what
// was found.
class StateMasks::Borrowed {
 public:
  Borrowed(StateMasks& of, std::unique_ptr<Stacks> stacks, Effort* effort)
      : of_(of), stacks_(std::move(stacks)) {
    if (!stacks_) stacks_ = std::make_unique<Stacks>(*of_.automaton_);
    stacks_->charge(effort);
  }
  ~Borrowed() {
    stacks_->charge(nullptr);
    const std::lock_guard lock(of_.mutex_);
    if (!of_.stacks_) of_.stacks_ = std::move(stacks_);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  std::unique_ptr<Stacks>& stacks() { return stacks_; }

 private:
  StateMasks& of_;
  std::unique_ptr<Stacks> stacks_;
};

std::shared_ptr<const StateMask> StateMasks::of(StateId state, Effort* effort) {
  // In a long text most positions are alike, because no token reaches a bound.
  state = automaton_->like(state, vocabulary_->max_depth());
  std::unique_ptr<Stacks> free;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(state);
    if (found != known_.end()) return found->second;
    free = std::move(stacks_);
  }
  Borrowed borrowed(*this, std::move(free), effort);
  auto made = make(state, borrowed.stacks());
  const std::lock_guard lock(mutex_);
  // Another one may have made it meanwhile.
  const auto found = known_.find(state);
  if (found != known_.end()) return found->second;
  if (bytes_ + made->bytes() > kMaxBytes) {
    known_.clear();
    bytes_ = 0;
  }
  bytes_ += made->bytes();
  known_.emplace(state, made);
  return made;
}

std::shared_ptr<const StateMask> StateMasks::make(
    StateId state,
    std::unique_ptr<Stacks>& stacks
) {
  if (stacks->bytes() > kMaxStackBytes) {
    stacks->spend(kRenewal);
    stacks = stacks->fresh();
  }
  TokenSet tokens(vocabulary_->size());
  std::vector<std::uint32_t> open;
  const auto nodes = vocabulary_->nodes();
  scan_all(
      *vocabulary_, stacks, stacks->alone(state),
      [&](std::uint32_t node, SetId set) {
        for (const std::int32_t id : vocabulary_->tokens(node)) tokens.add(id);
        if (nodes[node].end > node + 1 && stacks->may_end(set)) {
          open.push_back(node);
        }
      }
  );
  return std::make_shared<const StateMask>(tokens, std::move(open));
}

}  // namespace hearth::text::grammar
