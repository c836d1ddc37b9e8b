#pragma once
// Sequences that were answered, kept by what they hold: a prompt that begins
// like one of them shares its pages. The least recently used go first.
#include <cstdint>
#include <span>
#include <vector>

#include "hearth/infer/engine/runner.h"

namespace hearth::infer {

// Tokens that two texts begin with in common.
int common_prefix(
    std::span<const std::int32_t> a,
    std::span<const std::int32_t> b
);

// Among whom a beginning is shared: the same adapter, since another computes
// other keys and values, and the same scope, since whoever finds a beginning
// learns that somebody asked for it.
struct PrefixGroup {
  PrefixGroup(int of_adapter = -1, Hash128 of_scope = {})
      : adapter(of_adapter), scope(of_scope) {}
  bool operator==(const PrefixGroup&) const = default;

  int adapter;
  Hash128 scope;
};

class PrefixCache {
 public:
  explicit PrefixCache(Runner& runner) : runner_(runner) {}

  struct Match {
    SequenceId sequence = -1;
    int tokens = 0;  // 0: nothing begins like it
  };
  // The sequence with the longest common beginning, which counts as used.
  Match find(std::span<const std::int32_t> tokens, const PrefixGroup& group);

  // Takes the sequence over. What it holds the whole beginning of is dropped;
  // it is itself dropped when another holds all of it.
  void keep(
      SequenceId sequence,
      std::span<const std::int32_t> tokens,
      const PrefixGroup& group
  );
  // Closes the least recently used one but `except`; false when there is none.
  bool evict(SequenceId except = -1);
  void clear();
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<std::int32_t> tokens;
    PrefixGroup group;
    SequenceId sequence;
    std::uint64_t used;
  };
  Runner& runner_;
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace hearth::infer
