#pragma once
// Trains a byte-level BPE tokenizer and writes it as a tokenizer.json.
//
//   BpeTrainer trainer({.vocab_size = 4096, .special_tokens = {"<|end|>"}});
//   trainer.add_file("stories.txt");
//   write_file_atomically("tokenizer.json", trainer.train());
//
// Counting uses the shared thread pool. The result depends on the texts and
// options alone: not on the number of threads, nor on the order of the texts.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hearth::text {

struct BpeTrainerOptions {
  std::size_t vocab_size = 32000;   // special tokens and bytes counted
  std::uint64_t min_frequency = 2;  // of a pair that may merge
  // Take the first ids, in this order.
  std::vector<std::string> special_tokens;
  // Splits text into words; empty for GPT-2's.
  std::string pattern;
};

class BpeTrainer {
 public:
  // Throws UsageError when the vocabulary cannot hold the bytes and specials.
  explicit BpeTrainer(BpeTrainerOptions options);

  // Each text is split by itself.
  void add(std::span<const std::string_view> texts);
  // Every line of a file is a text, its line break included. Memory does not
  // grow with the file, only with the number of different words. `progress`,
  // here the bytes counted and below the tokens learned, is called now and
  // then; what it throws ends the work.
  using Progress = std::function<void(std::uint64_t)>;
  void add_file(const std::string& path, const Progress& progress = {});

  std::size_t distinct_words() const { return counts_.size(); }
  std::uint64_t words() const;

  // The text of a tokenizer.json.
  std::string train(const Progress& progress = {}) const;

 private:
  using Counts = std::unordered_map<std::string, std::uint64_t>;
  BpeTrainerOptions options_;
  Counts counts_;
};

}  // namespace hearth::text
