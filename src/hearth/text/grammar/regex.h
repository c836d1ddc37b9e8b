#pragma once
// Regular expressions as expressions of a grammar. What has no meaning as a
// set of texts (look-around, back references, word boundaries) is refused by
// name.
#include <functional>
#include <string>
#include <string_view>

#include "hearth/base/effort.h"
#include "hearth/text/grammar/expr.h"

namespace hearth::text::grammar {

struct RegexOptions {
  std::string who = "[infer.grammar_of_regex]";
  // Text may stand before and behind what matches, unless ^ and $ say
  // otherwise; without it the pattern must match the whole text.
  bool search = false;
  // Look-around and word boundaries are left out, as if they always held.
  bool wide = false;
  // How a character of a class is written in the text; as it is, by default.
  std::function<ExprPtr(std::vector<CodeRange>)> chars;
  Effort* effort = nullptr;
};

ExprPtr regex_expr(std::string_view pattern, const RegexOptions& options);

}  // namespace hearth::text::grammar
