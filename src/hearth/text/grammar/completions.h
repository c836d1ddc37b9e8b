#pragma once
// Whether a text at the end of a token can still be finished with whole
// tokens. Where tokens of one byte lead to the end from everywhere it always
// can; a vocabulary that lacks some may lead a text to where nothing follows.
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "hearth/base/effort.h"
#include "hearth/text/grammar/automaton.h"
#include "hearth/text/grammar/vocabulary.h"

namespace hearth::text::grammar {

class Completions {
 public:
  // How tokens lead from a state out of its rule.
  struct Leaving {
    bool at_end = false;  // a token ends where the rule does
    // A token goes on past the rule. Nobody has looked at its rest, so that a
    // text is never refused wrongly.
    bool inside = false;
  };

  Completions(
      const Automaton& automaton,
      const GrammarVocabulary& vocabulary,
      Effort& effort
  );

  // Every text can be finished, and leaving() may not be asked.
  bool always() const { return always_; }
  // What may leave a state with edges of its own (Automaton::uncounted). Where
  // there were too many pairs to examine, everything is taken as possible.
  Leaving leaving(StateId state) const {
    const auto found = leaving_.find(state);
    return found == leaving_.end() ? Leaving{true, true} : found->second;
  }

 private:
  bool always_;
  std::unordered_map<StateId, Leaving> leaving_;
};

}  // namespace hearth::text::grammar
