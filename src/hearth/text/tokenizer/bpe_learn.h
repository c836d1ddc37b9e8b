#pragma once
// The learning half of BPE: counted words in, merges out.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::text {

struct CountedWord {
  std::vector<std::int32_t> symbols;
  std::uint64_t count = 0;
};

struct LearnedMerge {
  std::int32_t left, right, merged;
};

// Merges the most frequent pair (of equal ones the one with the lower ids)
// until `tokens` has `limit` strings or no pair occurs min_frequency times.
// New tokens are appended to tokens, which holds the spelling of every symbol.
// `progress`, where there is one, is called now and then with the number of
// tokens; what it throws ends the learning.
std::vector<LearnedMerge> learn_merges(
    std::vector<CountedWord> words,
    std::vector<std::string>& tokens,
    std::size_t limit,
    std::uint64_t min_frequency,
    const std::function<void(std::size_t)>& progress = {}
);

}  // namespace hearth::text
