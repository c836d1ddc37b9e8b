#pragma once
// The order documents are seen in: a pure function of key, epoch and index, so
// that any point of a run can be found again without a list in memory.
#include <cstdint>
#include <vector>

#include "hearth/base/random.h"

namespace hearth::data {

// A random permutation of [0, n) that is computed, not stored: a Feistel
// network over the next power of four, walked until it lands inside.
class Permutation {
 public:
  Permutation(std::uint64_t n, RandomKey key);
  std::uint64_t operator()(std::uint64_t i) const;

 private:
  std::uint64_t n_;
  int half_bits_;
  RandomKey key_;
};

struct OrderSource {
  std::uint64_t items = 0, tokens = 0;
  double weight = 0;  // all zero: every item once an epoch
};

// With weights, a source's share of the tokens seen is its share of the
// weights. An epoch ends when the source that runs out first has been seen
// once; the others go on in the next where they stopped.
class DocumentOrder {
 public:
  struct Item {
    std::uint32_t source = 0;
    std::uint64_t index = 0;
  };
  DocumentOrder(std::vector<OrderSource> sources, RandomKey key, bool shuffle);
  // Items an epoch.
  std::uint64_t size() const { return starts_.back(); }
  Item at(std::uint64_t epoch, std::uint64_t index) const;

 private:
  std::vector<OrderSource> sources_;
  std::vector<std::uint64_t> starts_{0};
  RandomKey key_;
  bool shuffle_;
};

}  // namespace hearth::data
