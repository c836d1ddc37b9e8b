#pragma once
// What a text may be: a grammar over bytes, and the set of tokens that may
// come next. Whatever is chosen among them, the finished text is valid.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/base/json.h"

namespace hearth::text {

struct GrammarOptions {
  // Refuses what a grammar cannot express. Otherwise the closest wider grammar
  // is made: it takes all valid texts, and others too.
  bool strict = true;
  // The budget that making the grammar is charged to; null: one of its own.
  Effort* effort = nullptr;
};

// Immutable and shared. Each maker throws UsageError, one line that names what
// is not supported or where the source goes wrong; EffortError where that is
// too much work.
class Grammar;
std::shared_ptr<const Grammar> grammar_of_schema(
    const Json& schema,
    const GrammarOptions& options = {}
);
std::shared_ptr<const Grammar> grammar_of_any_json();  // an object
std::shared_ptr<const Grammar> grammar_of_regex(
    std::string_view pattern,
    Effort* effort = nullptr
);
std::shared_ptr<const Grammar> grammar_of_gbnf(
    std::string_view source,
    Effort* effort = nullptr
);

bool is_whole_text(const Grammar& grammar, std::string_view text);

// The bytes of every token, arranged for masks; made once per tokenizer.
// Tokens without bytes of their own (special ones) are empty.
class GrammarVocabulary;
std::shared_ptr<const GrammarVocabulary> grammar_vocabulary(
    const std::vector<std::string>& token_bytes,
    std::vector<std::int32_t> stop_ids
);

// The position of one text in its grammar, and the tokens that may follow. Not
// for several threads at once; but a copy may be used by another.
//
// Where a function takes an effort, it uses no more of it than there is: past
// that it throws EffortError, has changed nothing that counts, and may be
// called again with more, from another thread too. What was found until then is
// kept. A token's own budget is not the caller's: past it there is a
// UsageError.
class GrammarState {
 public:
  // The first for a grammar and a vocabulary looks for texts that the tokens
  // cannot write; that counts to `effort`, a budget of its own by default.
  GrammarState(
      std::shared_ptr<const Grammar> grammar,
      std::shared_ptr<const GrammarVocabulary> vocabulary,
      Effort* effort = nullptr
  );
  GrammarState(const GrammarState&);
  GrammarState& operator=(const GrammarState&);
  ~GrammarState();

  // Works out what mask() will say.
  void prepare(Effort* effort = nullptr);
  // -inf for every token that cannot come next. Stop ids are left where the
  // text may end.
  void mask(std::span<float> logits);
  // Throws Error when the token was not allowed.
  void accept(std::int32_t id, Effort* effort = nullptr);
  // Accepts bytes that are no whole token.
  void accept_bytes(std::string_view bytes, Effort* effort = nullptr);
  bool may_end() const;
  // Whether only the end can follow.
  bool must_end() const;
  // About what it takes of memory by itself.
  std::size_t bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::text
