#pragma once
// The rules that each source describes. The makers of grammar.h compile them;
// tests read them another way.
#include <string_view>

#include "hearth/base/effort.h"
#include "hearth/base/json.h"
#include "hearth/text/grammar/expr.h"

namespace hearth::text::grammar {

// GBNF, the form of BNF that llama.cpp reads:
//   root ::= greeting " " [a-z]+ ("!" | "?"){0,3}   # a comment
// A rule goes on until the next `name ::=`, over as many lines as it likes.
Rules gbnf_rules(std::string_view source, Effort& effort);
Rules regex_rules(std::string_view pattern, Effort& effort);
// See schema_impl.h and json_parts.h.
// Not strict: see GrammarOptions.
Rules schema_rules(const Json& schema, bool strict, Effort& effort);
Rules any_json_rules();

}  // namespace hearth::text::grammar
