// GrammarState: where a text is in its grammar, and which tokens may follow.
#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/compiled.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/grammar/reserve.h"

namespace hearth::text {

using grammar::kMaxStackBytes;
using grammar::kPerToken;
using grammar::kRenewal;
using grammar::kReserve;
using grammar::Place;
using grammar::SetId;
using grammar::Stacks;
using grammar::StateMasks;
using grammar::TokenEffort;
using grammar::TokenSet;

std::shared_ptr<const GrammarVocabulary> grammar_vocabulary(
    const std::vector<std::string>& token_bytes,
    std::vector<std::int32_t> stop_ids
) {
  return std::make_shared<GrammarVocabulary>(token_bytes, std::move(stop_ids));
}

std::shared_ptr<StateMasks> Grammar::masks(
    const std::shared_ptr<const GrammarVocabulary>& vocabulary,
    Effort& effort
) const {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const Known& k) { return k.vocabulary.expired(); });
  for (const Known& known : known_) {
    if (known.vocabulary.lock() == vocabulary) return known.masks;
  }
  known_.push_back(
      {vocabulary,
       std::make_shared<StateMasks>(automaton_, *vocabulary, effort)}
  );
  return known_.back().masks;
}

struct GrammarState::State {
  // Stacks of one text and of its copies, with the masks of where they stood.
  struct Table {
    explicit Table(std::unique_ptr<Stacks> empty) : stacks(std::move(empty)) {}

    static constexpr std::size_t kMaxMasks = 128;
    std::mutex mutex;
    std::unique_ptr<Stacks> stacks;
    std::unordered_map<SetId, std::shared_ptr<const TokenSet>> masks;
  };

  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<const GrammarVocabulary> vocabulary;
  std::shared_ptr<StateMasks> state_masks;
  std::shared_ptr<Table> table;
  SetId set = Stacks::kDead;
  std::shared_ptr<const TokenSet> next;  // what may follow, where it is known
  std::uint64_t reserve = kReserve;
  bool stopped = false;

  // Copies of this state keep the table they have.
  void renew_table() {
    table->stacks->spend(kRenewal);
    auto fresh = std::make_shared<Table>(table->stacks->fresh());
    table->stacks->charge(nullptr);
    set = table->stacks->copy_into(set, *fresh->stacks);
    table = std::move(fresh);
  }
  bool crowded() const { return table->stacks->bytes() > kMaxStackBytes; }
  bool may_end() const { return stopped || table->stacks->may_end(set); }

  // While one of these lives, what is done counts.
  class Charged {
   public:
    Charged(State& state, TokenEffort& effort) : state_(state) {
      state_.table->stacks->charge(&effort.effort());
    }
    ~Charged() { state_.table->stacks->charge(nullptr); }
    Charged(const Charged&) = delete;
    Charged& operator=(const Charged&) = delete;

   private:
    State& state_;
  };

  bool walk(std::string_view bytes, Effort* given);
  // A node's tokens, unless nothing could follow them.
  void add_tokens(
      TokenSet& tokens,
      std::uint32_t node,
      SetId after,
      Stacks& stacks
  ) const {
    const auto ids = vocabulary->tokens(node);
    if (ids.empty() || !stacks.can_finish(after)) return;
    for (const std::int32_t id : ids) tokens.add(id);
  }
  void prepare(Effort* given);
  std::shared_ptr<const TokenSet> mask();
  bool mask_by_state(TokenSet& tokens);
  bool mask_by_scan(TokenSet& tokens);
};

// By what is known of each state that the text may stand in. Gives up where
// that is more work than going through the vocabulary, or where it matters
// what lies below.
bool GrammarState::State::mask_by_state(TokenSet& tokens) {
  constexpr std::size_t kManyPlaces = 16;
  if (state_masks->completions() != nullptr) return false;
  Stacks& stacks = *table->stacks;
  const auto span = stacks.places(set);
  if (span.size() > kManyPlaces) return false;
  const std::vector<Place> places(span.begin(), span.end());
  const auto nodes = vocabulary->nodes();
  std::vector<SetId> path(vocabulary->max_depth() + 1, Stacks::kDead);
  const auto seen = [&](std::uint32_t node, SetId) {
    for (const std::int32_t id : vocabulary->tokens(node)) tokens.add(id);
  };
  for (const Place& place : places) {
    if (place.state == grammar::Automaton::kDone) continue;
    const auto known = state_masks->of(place.state, stacks.effort());
    known->add_to(tokens);
    if (known->open().empty()) continue;
    const SetId after = stacks.returns(place.below);
    if (after == Stacks::kFinished) continue;
    for (const std::uint32_t node : known->open()) {
      path[nodes[node].depth] = after;
      const std::uint32_t end = nodes[node].end;
      if (scan(*vocabulary, stacks, node + 1, end, path, seen) < end) {
        return false;
      }
    }
  }
  return true;
}

bool GrammarState::State::mask_by_scan(TokenSet& tokens) {
  std::vector<SetId> path(vocabulary->max_depth() + 1, Stacks::kDead);
  path[0] = set;
  const auto end = static_cast<std::uint32_t>(vocabulary->node_count());
  const auto seen = [&](std::uint32_t node, SetId after) {
    add_tokens(tokens, node, after, *table->stacks);
  };
  return scan(*vocabulary, *table->stacks, 1, end, path, seen) >= end;
}

std::shared_ptr<const TokenSet> GrammarState::State::mask() {
  const auto found = table->masks.find(set);
  if (found != table->masks.end()) return found->second;
  auto tokens = std::make_shared<TokenSet>(vocabulary->size());
  if (crowded()) renew_table();
  if (!mask_by_state(*tokens) && !mask_by_scan(*tokens)) {
    // The text's own stacks would grow too large here.
    auto stacks = table->stacks->fresh();
    const SetId copy = table->stacks->copy_into(set, *stacks);
    scan_all(*vocabulary, stacks, copy, [&](std::uint32_t node, SetId after) {
      add_tokens(*tokens, node, after, *stacks);
    });
  }
  if (table->stacks->may_end(set)) {
    for (const std::int32_t id : vocabulary->stop_ids()) tokens->add(id);
  }
  if (table->masks.size() >= Table::kMaxMasks) table->masks.clear();
  table->masks.emplace(set, tokens);
  return tokens;
}

GrammarState::GrammarState(
    std::shared_ptr<const Grammar> grammar,
    std::shared_ptr<const GrammarVocabulary> vocabulary,
    Effort* given
)
    : state_(std::make_unique<State>()) {
  Effort own;
  state_->grammar = std::move(grammar);
  state_->vocabulary = std::move(vocabulary);
  state_->state_masks = state_->grammar->masks(
      state_->vocabulary, given != nullptr ? *given : own
  );
  state_->table = std::make_shared<State::Table>(std::make_unique<Stacks>(
      state_->grammar->automaton(), state_->state_masks->completions()
  ));
  TokenEffort effort(kReserve, nullptr);
  const State::Charged charged(*state_, effort);
  Stacks& stacks = *state_->table->stacks;
  state_->set = effort.run([&] { return stacks.start(); });
  if (!stacks.can_finish(state_->set)) {
    throw UsageError(
        "[infer.GrammarState] the vocabulary's tokens must be able to write a "
        "text of the grammar, they can write none"
    );
  }
}

GrammarState::GrammarState(const GrammarState& other)
    : state_(std::make_unique<State>(*other.state_)) {}

GrammarState& GrammarState::operator=(const GrammarState& other) {
  if (this != &other) *state_ = *other.state_;
  return *this;
}

GrammarState::~GrammarState() = default;

// What was used up before the caller's effort was, is used up.
void GrammarState::State::prepare(Effort* given) {
  TokenEffort effort(reserve, given);
  const Charged charged(*this, effort);
  try {
    next = effort.run([&] { return mask(); });
  } catch (...) {
    reserve = effort.left_of_reserve();
    throw;
  }
  reserve = std::min(kReserve, effort.left_of_reserve() + kPerToken);
}

void GrammarState::prepare(Effort* effort) {
  if (state_->next) return;
  if (state_->stopped) {
    const auto stops = std::make_shared<TokenSet>(state_->vocabulary->size());
    for (const std::int32_t id : state_->vocabulary->stop_ids()) {
      stops->add(id);
    }
    state_->next = stops;
    return;
  }
  const auto table = state_->table;  // it may be renewed
  const std::lock_guard lock(table->mutex);
  state_->prepare(effort);
}

void GrammarState::mask(std::span<float> logits) {
  const GrammarVocabulary& vocabulary = *state_->vocabulary;
  if (logits.size() < vocabulary.size()) {
    throw UsageError(
        fmt::format(
            "[infer.GrammarState::mask] logits must be at least as many as "
            "tokens, {}, got {}",
            vocabulary.size(), logits.size()
        )
    );
  }
  prepare();
  const auto table = state_->table;
  const std::lock_guard lock(table->mutex);
  const TokenSet* tokens = state_->next.get();
  if (tokens->empty() && !state_->may_end()) {
    throw Error(
        "[infer.GrammarState::mask] a token must be able to follow here, the "
        "vocabulary has none"
    );
  }
  tokens->mask(logits);
}

// False where the grammar ends before the bytes do.
bool GrammarState::State::walk(std::string_view bytes, Effort* given) {
  TokenEffort effort(kReserve, given);
  const Charged charged(*this, effort);
  return effort.run([&] {
    if (crowded()) renew_table();
    SetId at = set;
    for (const char byte : bytes) {
      at = table->stacks->step(at, static_cast<std::uint8_t>(byte));
      if (at == Stacks::kDead) return false;
    }
    set = at;
    next = nullptr;
    return true;
  });
}

void GrammarState::accept(std::int32_t id, Effort* effort) {
  const GrammarVocabulary& vocabulary = *state_->vocabulary;
  const auto refuse = [&] {
    throw Error(
        fmt::format(
            "[infer.GrammarState::accept] the token must be one that the "
            "grammar allows here, got {}",
            id
        )
    );
  };
  if (id < 0 || static_cast<std::size_t>(id) >= vocabulary.size()) refuse();
  const auto table = state_->table;
  const std::lock_guard lock(table->mutex);
  if (vocabulary.is_stop(id)) {
    if (!state_->may_end()) refuse();
    state_->stopped = true;
    state_->next = nullptr;
    return;
  }
  const std::string_view bytes = vocabulary.bytes_of(id);
  const bool may_come = !state_->stopped && !bytes.empty();
  if (!may_come || !state_->walk(bytes, effort)) refuse();
}

void GrammarState::accept_bytes(std::string_view bytes, Effort* effort) {
  const auto table = state_->table;
  const std::lock_guard lock(table->mutex);
  if (!state_->stopped && state_->walk(bytes, effort)) return;
  throw Error(
      "[infer.GrammarState::accept_bytes] the text must be one that the "
      "grammar allows here"
  );
}

bool GrammarState::may_end() const {
  const std::lock_guard lock(state_->table->mutex);
  return state_->may_end();
}

std::size_t GrammarState::bytes() const {
  const auto table = state_->table;
  const std::lock_guard lock(table->mutex);
  return table->stacks->bytes() +
         table->masks.size() * state_->vocabulary->size() / 8;
}

bool GrammarState::must_end() const {
  return state_->stopped || state_->set == Stacks::kFinished;
}

}  // namespace hearth::text
