#pragma once
// What reading a text in its grammar may cost.
#include <cstdint>

#include "hearth/base/effort.h"
#include "hearth/base/error.h"

namespace hearth::text::grammar {

// Places that a mask, or the reading of a text, may look at: a reserve for what
// is hard once, and what each token adds to it.
constexpr std::uint64_t kReserve = 2'000'000, kPerToken = 50'000;

// The budget of a token is not the caller's: passing it tells of the grammar.
template <typename Work>
auto within_reserve(const Work& work) {
  try {
    return work();
  } catch (const EffortError&) {
    throw UsageError(
        "[infer.grammar] the grammar is too ambiguous: too many ways to read "
        "the text must be looked at for its next token"
    );
  }
}

}  // namespace hearth::text::grammar
