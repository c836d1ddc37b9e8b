#include "hearth/text/tokenizer/bpe_learn.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

namespace hearth::text {
namespace {

using Pair = std::uint64_t;
Pair pack(std::int32_t left, std::int32_t right) {
  return Pair{static_cast<std::uint32_t>(left)} << 32 |
         static_cast<std::uint32_t>(right);
}

struct PairState {
  std::int64_t count = 0;
  std::vector<std::uint32_t> words;  // where it occurs or once occurred
};

// The highest count first, then the lower pair.
struct Candidate {
  std::int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Learner {
 public:
  Learner(std::vector<CountedWord> words, std::vector<std::string>& tokens)
      : words_(std::move(words)), tokens_(tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      ids_.emplace(tokens[i], static_cast<std::int32_t>(i));
    }
    for (std::uint32_t w = 0; w < words_.size(); ++w) {
      const std::vector<std::int32_t>& symbols = words_[w].symbols;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        count(symbols[i], symbols[i + 1], +1, w);
      }
    }
    for (const auto& [pair, state] : pairs_) {
      queue_.push({state.count, pair});
    }
    changed_.clear();
  }

  std::vector<LearnedMerge> run(
      std::size_t limit,
      std::uint64_t minimum,
      const std::function<void(std::size_t)>& progress
  ) {
    std::vector<LearnedMerge> merges;
    while (tokens_.size() < limit && !queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      PairState& state = pairs_[top.pair];
      if (state.count != top.count) {
        if (state.count > 0) queue_.push({state.count, top.pair});
        continue;
      }
      if (top.count < 1 || static_cast<std::uint64_t>(top.count) < minimum) {
        break;
      }
      merges.push_back(merge(top.pair, state));
      if (progress && merges.size() % 64 == 0) progress(tokens_.size());
    }
    return merges;
  }

 private:
  void count(std::int32_t left, std::int32_t right, int sign, std::uint32_t w) {
    const Pair pair = pack(left, right);
    PairState& state = pairs_[pair];
    state.count += sign * static_cast<std::int64_t>(words_[w].count);
    if (sign < 0) return;
    if (state.words.empty() || state.words.back() != w) {
      state.words.push_back(w);
    }
    changed_.push_back(pair);
  }

  LearnedMerge merge(Pair pair, PairState& state) {
    const auto left = static_cast<std::int32_t>(pair >> 32);
    const auto right = static_cast<std::int32_t>(pair & 0xFFFFFFFF);
    const std::string spelling = tokens_[static_cast<std::size_t>(left)] +
                                 tokens_[static_cast<std::size_t>(right)];
    const auto [it, fresh] =
        ids_.emplace(spelling, static_cast<std::int32_t>(tokens_.size()));
    if (fresh) tokens_.push_back(spelling);
    // Counting adds to the list of this very pair when it overlaps itself.
    std::vector<std::uint32_t> where = std::move(state.words);
    state.words.clear();
    std::sort(where.begin(), where.end());
    where.erase(std::unique(where.begin(), where.end()), where.end());
    changed_.clear();
    for (const std::uint32_t w : where) merge_in(w, left, right, it->second);
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(
        std::unique(changed_.begin(), changed_.end()), changed_.end()
    );
    for (const Pair p : changed_) {
      if (const std::int64_t count = pairs_[p].count; count > 0) {
        queue_.push({count, p});
      }
    }
    return {left, right, it->second};
  }

  void merge_in(
      std::uint32_t w,
      std::int32_t left,
      std::int32_t right,
      std::int32_t both
  ) {
    std::vector<std::int32_t>& symbols = words_[w].symbols;
    const std::size_t n = symbols.size();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++kept) {
      if (i + 1 >= n || symbols[i] != left || symbols[i + 1] != right) {
        symbols[kept] = symbols[i++];
        continue;
      }
      count(left, right, -1, w);
      if (kept > 0) {
        count(symbols[kept - 1], left, -1, w);
        count(symbols[kept - 1], both, +1, w);
      }
      if (i + 2 < n) {
        count(right, symbols[i + 2], -1, w);
        count(both, symbols[i + 2], +1, w);
      }
      symbols[kept] = both;
      i += 2;
    }
    symbols.resize(kept);
  }

  std::vector<CountedWord> words_;
  std::vector<std::string>& tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<Pair, PairState> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> changed_;
};

}  // namespace

std::vector<LearnedMerge> learn_merges(
    std::vector<CountedWord> words,
    std::vector<std::string>& tokens,
    std::size_t limit,
    std::uint64_t min_frequency,
    const std::function<void(std::size_t)>& progress
) {
  return Learner(std::move(words), tokens).run(limit, min_frequency, progress);
}

}  // namespace hearth::text
