#pragma once
// A grammar ready to be used, and what is known of its states for each
// vocabulary it has met.
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hearth/text/grammar/automaton.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/grammar/masks.h"

namespace hearth::text {

class Grammar {
 public:
  // `who` begins the messages of what is thrown: "[infer.grammar_of_regex]".
  Grammar(const grammar::Rules& rules, const std::string& who, Effort& effort)
      : automaton_(rules, who, effort) {}

  const grammar::Automaton& automaton() const { return automaton_; }
  std::shared_ptr<grammar::StateMasks> masks(
      const std::shared_ptr<const GrammarVocabulary>& vocabulary,
      Effort& effort
  ) const;

 private:
  struct Known {
    std::weak_ptr<const GrammarVocabulary> vocabulary;
    std::shared_ptr<grammar::StateMasks> masks;
  };
  grammar::Automaton automaton_;
  mutable std::mutex mutex_;
  mutable std::vector<Known> known_;
};

}  // namespace hearth::text
