#pragma once
// Sequences that were answered, kept by what they hold: a prompt that begins
// like one of them shares its pages. The least recently used go first.
#include <cstdint>
#include <span>
#include <vector>

#include "hearth/infer/runner.h"

namespace hearth::infer {

// Tokens that two texts begin with in common.
int common_prefix(
    std::span<const std::int32_t> a,
    std::span<const std::int32_t> b
);

class PrefixCache {
 public:
  explicit PrefixCache(Runner& runner) : runner_(runner) {}

  struct Match {
    SequenceId sequence = -1;
    int tokens = 0;  // 0: nothing begins like it
  };
  // The sequence with the longest common beginning, which counts as used.
  Match find(std::span<const std::int32_t> tokens, int adapter);

  // Takes the sequence over. What it holds the whole beginning of is dropped;
  // it is itself dropped when another holds all of it.
  void keep(
      SequenceId sequence,
      std::span<const std::int32_t> tokens,
      int adapter
  );
  // Closes the least recently used one but `except`; false when there is none.
  bool evict(SequenceId except = -1);
  void clear();
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<std::int32_t> tokens;
    int adapter;
    SequenceId sequence;
    std::uint64_t used;
  };
  Runner& runner_;
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace hearth::infer
