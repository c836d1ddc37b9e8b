#pragma once
// The pieces that texts in JSON are made of.
//
// White space: between the parts of an object or array there may be nothing,
// one space, or a line break and up to kMaxIndent spaces; after a colon nothing
// or one space; nowhere else. A model cannot lose itself in blanks, and the end
// of the value is the end of the text.
#include <string_view>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/text/grammar/expr.h"

namespace hearth::text::grammar {

constexpr int kMaxIndent = 20;

ExprPtr json_space();
ExprPtr json_colon();
ExprPtr json_comma();  // and the space behind it

// Characters of these ranges as they stand inside a string: as they are, or
// escaped where JSON demands it.
ExprPtr json_chars(const std::vector<CodeRange>& ranges);
// Any character in any way that JSON can write it.
ExprPtr json_char();
// A JSON string with its quotes; lengths count characters.
ExprPtr json_string(int min, int max);
// A name in quotes that is none of `taken`; written without escapes.
ExprPtr json_other_name(const std::vector<std::string>& taken);
// Numbers that every reader can hold: at most 18 digits before the point, 16
// behind it, two of the exponent.
ExprPtr json_integer();
ExprPtr json_number();
// One value, written compactly.
ExprPtr json_literal(const Json& value);

// Adds the rules of any value to `rules`.
struct AnyJson {
  int value = -1, object = -1, array = -1;
};
AnyJson add_any_json(Rules& rules);

// {open} parts {close} with what stands between them; `parts` is empty where
// there may be none.
ExprPtr json_bracketed(
    std::string_view open,
    ExprPtr parts,
    std::string_view close
);

}  // namespace hearth::text::grammar
