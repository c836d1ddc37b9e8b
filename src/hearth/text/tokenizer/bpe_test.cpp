// Merging and learning against the plainest way to do either.
#include "hearth/text/tokenizer/bpe.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "hearth/text/tokenizer/bpe_learn.h"

namespace hearth::text {
namespace {

using Ids = std::vector<std::int32_t>;
using Merges = std::map<std::pair<int, int>, std::pair<std::uint32_t, int>>;

Ids plain_merge(const Merges& merges, Ids ids) {
  while (true) {
    std::size_t best = 0;
    std::uint32_t rank = ~0u;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto it = merges.find({ids[i], ids[i + 1]});
      if (it != merges.end() && it->second.first < rank) {
        best = i;
        rank = it->second.first;
      }
    }
    if (rank == ~0u) return ids;
    ids[best] = merges.at({ids[best], ids[best + 1]}).second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, ShortAndLongWordsMergeAlike) {
  std::mt19937 rng(1);
  ModelScratch scratch;
  for (int round = 0; round < 60; ++round) {
    Merges merges;
    PairTable table;
    const int symbols = 3 + static_cast<int>(rng() % 6);
    for (int i = 0; i < 30; ++i) {
      const int a = static_cast<int>(rng() % (symbols + i));
      const int b = static_cast<int>(rng() % (symbols + i));
      merges[{a, b}] = {static_cast<std::uint32_t>(i), symbols + i};
      table.set(a, b, {static_cast<std::uint32_t>(i), symbols + i});
    }
    for (const std::size_t size : {1, 2, 7, 47, 48, 49, 50, 300}) {
      Ids ids(size);
      for (auto& id : ids) id = static_cast<int>(rng() % symbols);
      scratch.symbols = ids;
      merge_symbols(table, scratch);
      ASSERT_EQ(scratch.symbols, plain_merge(merges, ids)) << size;
    }
  }
}

TEST(PairTable, KeepsTheLastOfTwo) {
  PairTable table;
  std::map<std::pair<int, int>, int> plain;
  std::mt19937 rng(2);
  for (int i = 0; i < 5000; ++i) {
    const int a = static_cast<int>(rng() % 80),
              b = static_cast<int>(rng() % 80);
    table.set(a, b, {1, i});
    plain[{a, b}] = i;
  }
  EXPECT_EQ(table.size(), plain.size());
  for (int a = 0; a < 80; ++a) {
    for (int b = 0; b < 80; ++b) {
      const auto it = plain.find({a, b});
      EXPECT_EQ(table.find(a, b).merged, it == plain.end() ? -1 : it->second);
    }
  }
}

TEST(Vocabulary, FindsBothWays) {
  Vocabulary vocabulary;
  for (int i = 0; i < 3000; ++i) {
    vocabulary.add("token" + std::to_string(i * 7), i);
  }
  EXPECT_EQ(vocabulary.size(), 3000u);
  for (int i = 0; i < 3000; ++i) {
    const std::string token = "token" + std::to_string(i * 7);
    EXPECT_EQ(vocabulary.find(token), i);
    EXPECT_EQ(vocabulary.token(i), token);
  }
  EXPECT_EQ(vocabulary.find("token1"), -1);
  EXPECT_EQ(vocabulary.find(""), -1);
  EXPECT_FALSE(vocabulary.contains(3000));
  EXPECT_EQ(vocabulary.token(-1), "");
}

TEST(PieceCache, RemembersUntilItIsPushedOut) {
  PieceCache cache;
  const std::string text = "some words to keep, and room to read past them....";
  const auto key = PieceCache::key_of(text.data(), 5, text.size());
  const std::int32_t ids[] = {1, 2, 3};
  EXPECT_EQ(cache.find(key), nullptr);
  cache.insert(key, ids, 3);
  // The same bytes at the end of a buffer have the same key.
  const std::string copy = "some ";
  const auto* entry = cache.find(PieceCache::key_of(copy.data(), 5, 5));
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(Ids(entry->ids, entry->ids + entry->count), (Ids{1, 2, 3}));
  // A prefix, and a longer piece padded with zeros, are other pieces.
  EXPECT_EQ(
      cache.find(PieceCache::key_of(text.data(), 4, text.size())), nullptr
  );
  const std::string zeros("some \0", 6);
  EXPECT_EQ(cache.find(PieceCache::key_of(zeros.data(), 6, 6)), nullptr);
  cache.clear();
  EXPECT_EQ(cache.find(key), nullptr);
}

// Recounts everything at every step.
std::vector<std::pair<int, int>> plain_learn(
    std::vector<CountedWord> words,
    std::vector<std::string> tokens,
    std::size_t limit,
    std::int64_t least
) {
  std::vector<std::pair<int, int>> merges;
  while (tokens.size() < limit) {
    std::map<std::pair<int, int>, std::int64_t> counts;
    for (const auto& w : words) {
      for (std::size_t i = 0; i + 1 < w.symbols.size(); ++i) {
        counts[{w.symbols[i], w.symbols[i + 1]}] +=
            static_cast<std::int64_t>(w.count);
      }
    }
    const auto best = std::max_element(
        counts.begin(), counts.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;  // the first of equal ones
        }
    );
    if (best == counts.end() || best->second < least) break;
    const auto [left, right] = best->first;
    merges.emplace_back(left, right);
    const std::string both = tokens[static_cast<std::size_t>(left)] +
                             tokens[static_cast<std::size_t>(right)];
    auto at = std::find(tokens.begin(), tokens.end(), both);
    const int id = static_cast<int>(at - tokens.begin());
    if (at == tokens.end()) tokens.push_back(both);
    for (auto& w : words) {
      Ids merged;
      for (std::size_t i = 0; i < w.symbols.size(); ++i) {
        const bool pair = i + 1 < w.symbols.size() && w.symbols[i] == left &&
                          w.symbols[i + 1] == right;
        merged.push_back(pair ? id : w.symbols[i]);
        i += pair;
      }
      w.symbols = merged;
    }
  }
  return merges;
}

TEST(BpeLearn, AgreesWithRecounting) {
  std::mt19937 rng(4);
  for (int round = 0; round < 20; ++round) {
    std::vector<CountedWord> words(30);
    for (auto& w : words) {
      w.count = rng() % 20 + 1;
      w.symbols.resize(rng() % 9 + 1);
      for (auto& s : w.symbols) s = static_cast<int>(rng() % 3);
    }
    std::vector<std::string> tokens = {"a", "b", "c"};
    const auto want = plain_learn(words, tokens, 40, 2);
    const auto got = learn_merges(words, tokens, 40, 2);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::pair(got[i].left, got[i].right), want[i]) << i;
    }
  }
}

}  // namespace
}  // namespace hearth::text
