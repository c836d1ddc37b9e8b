// The two ways to merge: short words by scanning for the lowest rank, long
// ones with a heap, so that a megabyte without spaces stays n log n.
#include <algorithm>
#include <cstring>
#include <functional>

#include "hearth/text/tokenizer/bpe.h"

namespace hearth::text {
namespace {

constexpr std::size_t kShort = 48;
constexpr std::uint32_t kNone = ~0u;

void merge_short(const PairTable& merges, std::vector<std::int32_t>& symbols) {
  std::int32_t* ids = symbols.data();
  std::size_t n = symbols.size();
  std::uint32_t ranks[kShort];
  std::int32_t merged[kShort];
  const auto look = [&](std::size_t i) {
    const PairTable::Merge merge = merges.find(ids[i], ids[i + 1]);
    ranks[i] = merge.rank;
    merged[i] = merge.merged;
  };
  for (std::size_t i = 0; i + 1 < n; ++i) look(i);
  while (n > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < n; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == PairTable::kNoRank) break;
    ids[best] = merged[best];
    const std::size_t tail = n - best - 2;
    std::memmove(ids + best + 1, ids + best + 2, tail * sizeof *ids);
    std::memmove(ranks + best, ranks + best + 1, tail * sizeof *ranks);
    std::memmove(merged + best, merged + best + 1, tail * sizeof *merged);
    --n;
    if (best + 1 < n) look(best);
    if (best > 0) look(best - 1);
  }
  symbols.resize(n);
}

// A doubly linked list in arrays, and a heap of (rank, position). An entry is
// stale when the pair at its position has another rank by now.
struct LongWord {
  const PairTable& merges;
  std::vector<std::int32_t>& ids;
  std::vector<std::uint64_t>& heap;
  std::uint32_t *previous, *next, *rank;

  LongWord(const PairTable& table, ModelScratch& scratch)
      : merges(table), ids(scratch.symbols), heap(scratch.heap) {
    const std::size_t n = ids.size();
    scratch.links.resize(n * 3);
    previous = scratch.links.data();
    next = previous + n;
    rank = next + n;
    heap.clear();
    for (std::size_t i = 0; i < n; ++i) {
      previous[i] = static_cast<std::uint32_t>(i) - 1;
      next[i] = i + 1 < n ? static_cast<std::uint32_t>(i) + 1 : kNone;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (look(static_cast<std::uint32_t>(i))) {
        heap.push_back(entry(static_cast<std::uint32_t>(i)));
      }
    }
    std::make_heap(heap.begin(), heap.end(), std::greater<>{});
  }

  std::uint64_t entry(std::uint32_t i) const {
    return std::uint64_t{rank[i]} << 32 | i;
  }
  bool look(std::uint32_t i) {
    rank[i] = next[i] == kNone ? PairTable::kNoRank
                               : merges.find(ids[i], ids[next[i]]).rank;
    return rank[i] != PairTable::kNoRank;
  }
  void push(std::uint32_t i) {
    if (!look(i)) return;
    heap.push_back(entry(i));
    std::push_heap(heap.begin(), heap.end(), std::greater<>{});
  }

  void run() {
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), std::greater<>{});
      const std::uint64_t top = heap.back();
      heap.pop_back();
      const auto i = static_cast<std::uint32_t>(top);
      if (rank[i] != static_cast<std::uint32_t>(top >> 32)) continue;
      const std::uint32_t right = next[i];
      ids[i] = merges.find(ids[i], ids[right]).merged;
      rank[right] = PairTable::kNoRank;
      next[i] = next[right];
      if (next[i] != kNone) previous[next[i]] = i;
      push(i);
      if (previous[i] != kNone) push(previous[i]);
    }
    std::size_t kept = 0;
    for (std::uint32_t i = 0; i != kNone; i = next[i]) ids[kept++] = ids[i];
    ids.resize(kept);
  }
};

}  // namespace

void merge_symbols(const PairTable& merges, ModelScratch& scratch) {
  if (scratch.symbols.size() < 2) return;
  if (scratch.symbols.size() <= kShort) {
    merge_short(merges, scratch.symbols);
  } else {
    LongWord(merges, scratch).run();
  }
}

}  // namespace hearth::text
