#pragma once
// A text that is held to a grammar while it grows, from its beginning or from a
// mark in it on. What a token brings is noted first and worked through after,
// since that may be much work: an effort bounds it, and what was too much is
// begun again with more, on another thread if need be.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hearth/base/effort.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/grammar/whole_beginnings.h"

namespace hearth::text {

// Not for several threads at once.
class HeldText {
 public:
  struct Options {
    // Where this is not empty, the text is free until it contains these
    // characters; the grammar holds for what follows them.
    std::string after;
    // may_end() will be asked.
    bool has_stops = false;
  };
  // What the grammar's first use takes counts to `effort`; null: a budget of
  // its own.
  HeldText(
      std::shared_ptr<const Grammar> grammar,
      std::shared_ptr<const GrammarVocabulary> vocabulary,
      Options options,
      Effort* effort = nullptr
  );

  // Whether the mark has come.
  bool held() const { return held_; }
  // Notes the token that comes next. `spelled`: its characters, a special
  // token's too, which matter until the mark has come. `shown`: what it adds to
  // the text that may_end() is asked about. What was noted before must have
  // been followed.
  void push(std::int32_t id, std::string_view spelled, std::string_view shown);
  // Works through what was noted. Throws as GrammarState does: EffortError
  // where the effort does not suffice, and then goes on in the next call.
  void follow(Effort* effort = nullptr);
  // Works out what mask() will say; the same holds.
  void prepare(Effort* effort = nullptr);

  // Once the mark has come: -inf for every token that cannot be next.
  void mask(std::span<float> logits) { state_.mask(logits); }
  // Whether only the end can follow.
  bool must_end() const { return held_ && state_.must_end(); }
  // Whether this beginning of the text may be all of it: a text must not be cut
  // where the grammar has not finished, but what is free before it may be.
  bool may_end(std::string_view text);
  // About what it takes of memory.
  std::size_t bytes() const;

 private:
  std::shared_ptr<const Grammar> grammar_;
  GrammarState state_;
  std::string after_;
  bool held_;
  std::string last_free_;  // the end of the free text, shorter than the mark

  std::string text_;        // all that is shown, where there are stops
  std::size_t begins_ = 0;  // where in it the grammar does
  std::optional<grammar::WholeBeginnings> whole_;

  // Noted and not yet followed.
  std::optional<std::int32_t> token_;
  std::string behind_mark_;

  void look_for_mark(std::string_view spelled);
};

}  // namespace hearth::text
