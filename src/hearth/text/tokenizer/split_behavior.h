#pragma once
// What becomes of the text that a splitting pattern matched.
#include <string_view>

#include "hearth/text/tokenizer/matcher.h"

namespace hearth::text {

enum class Behavior {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};
// Throws FormatError for an unknown name.
Behavior parse_behavior(std::string_view name);

// Calls on_part with the parts of text, which may be empty. `find` calls back
// with the matches; invert swaps matched and unmatched.
void split_by(
    std::string_view text,
    FunctionRef<void(OnMatch)> find,
    Behavior behavior,
    bool invert,
    FunctionRef<void(std::string_view part)> on_part
);

}  // namespace hearth::text
