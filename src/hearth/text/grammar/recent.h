#pragma once
// The grammars made last. A server is asked for the same schema again and
// again, and what is known of a grammar's states is worth more than making it.
#include <functional>
#include <memory>
#include <string>

#include "hearth/base/effort.h"
#include "hearth/text/grammar/expr.h"

namespace hearth::text {

class Grammar;

namespace grammar {

// The one made for this key before, where it is among the last few; else what
// `make` returns. For several threads.
std::shared_ptr<const Grammar> recent_grammar(
    const std::string& key,
    const std::function<std::shared_ptr<const Grammar>()>& make
);

// The same, from rules. What it takes counts to `effort`; null: a budget of
// its own. `who` begins the messages of what is thrown.
std::shared_ptr<const Grammar> recent_grammar(
    const std::string& key,
    const std::string& who,
    Effort* effort,
    const std::function<Rules(Effort&)>& rules
);

}  // namespace grammar
}  // namespace hearth::text
