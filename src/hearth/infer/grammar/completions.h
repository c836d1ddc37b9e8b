#pragma once
// Whether a text at the end of a token can still be finished with whole
// tokens. Where every byte of the grammar is a token by itself it always can;
// a vocabulary that lacks some may lead a text to where nothing follows.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hearth/infer/grammar/automaton.h"
#include "hearth/infer/grammar/vocabulary.h"

namespace hearth::infer::grammar {

class Completions {
 public:
  // How tokens lead from a state out of its rule.
  struct Leaving {
    bool at_end = false;  // a token ends where the rule does
    // A token goes on past the rule. Nobody has looked at its rest, so that a
    // text is never refused wrongly.
    bool inside = false;
  };

  Completions(const Automaton& automaton, const GrammarVocabulary& vocabulary);

  // Every text can be finished, and leaving() may not be asked.
  bool always() const { return leaving_.empty(); }
  Leaving leaving(StateId state) const {
    return leaving_[static_cast<std::size_t>(state)];
  }

 private:
  std::vector<Leaving> leaving_;  // by state
};

}  // namespace hearth::infer::grammar
