#include "hearth/text/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_set>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"
#include "hearth/base/mapped_file.h"
#include "hearth/base/thread_pool.h"
#include "hearth/text/tokenizer/bpe_learn.h"
#include "hearth/text/tokenizer/byte_alphabet.h"
#include "hearth/text/tokenizer/known_patterns.h"
#include "hearth/text/tokenizer/matcher.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

constexpr std::size_t kBatch = std::size_t{8} << 20;

std::unique_ptr<Matcher> matcher_of(const BpeTrainerOptions& options) {
  return make_regex_matcher(
      options.pattern.empty() ? std::string(kGpt2Pattern) : options.pattern
  );
}

// The words of one text: matches and what lies between them.
template <class OnWord>
void words_of(std::string_view text, const Matcher& matcher, OnWord on_word) {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  std::size_t done = 0;
  matcher.find_all(text, [&](std::size_t begin, std::size_t end) {
    if (done < begin) on_word(text.substr(done, begin - done));
    if (begin < end) on_word(text.substr(begin, end - begin));
    done = end;
  });
  if (done < text.size()) on_word(text.substr(done));
}

Json pre_tokenizer_json(const std::string& pattern) {
  Json bytes = {
      {"type", "ByteLevel"},
      {"add_prefix_space", false},
      {"trim_offsets", true},
      {"use_regex", pattern.empty()}
  };
  if (pattern.empty()) return bytes;
  Json split = {
      {"type", "Split"},
      {"pattern", {{"Regex", pattern}}},
      {"behavior", "Isolated"},
      {"invert", false}
  };
  return {{"type", "Sequence"}, {"pretokenizers", Json::array({split, bytes})}};
}

Json added_json(const std::vector<std::string>& specials) {
  Json out = Json::array();
  for (std::size_t i = 0; i < specials.size(); ++i) {
    out.push_back(
        {{"id", i},
         {"content", specials[i]},
         {"single_word", false},
         {"lstrip", false},
         {"rstrip", false},
         {"normalized", false},
         {"special", true}}
    );
  }
  return out;
}

Json model_json(
    const std::vector<std::string>& tokens,
    const std::vector<LearnedMerge>& merges
) {
  Json model = {
      {"type", "BPE"},
      {"dropout", nullptr},
      {"unk_token", nullptr},
      {"continuing_subword_prefix", nullptr},
      {"end_of_word_suffix", nullptr},
      {"fuse_unk", false},
      {"byte_fallback", false},
      {"ignore_merges", false}
  };
  // ordered_json looks a key up in linear time, so the pairs go in directly.
  Json::object_t vocab;
  vocab.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    vocab.Container::emplace_back(tokens[i], i);
  }
  model["vocab"] = std::move(vocab);
  Json list = Json::array();
  for (const LearnedMerge& merge : merges) {
    list.push_back(
        Json::array(
            {tokens[static_cast<std::size_t>(merge.left)],
             tokens[static_cast<std::size_t>(merge.right)]}
        )
    );
  }
  model["merges"] = std::move(list);
  return model;
}

}  // namespace

BpeTrainer::BpeTrainer(BpeTrainerOptions options)
    : options_(std::move(options)) {
  const std::unordered_set<std::string> distinct(
      options_.special_tokens.begin(), options_.special_tokens.end()
  );
  if (distinct.size() != options_.special_tokens.size() ||
      distinct.contains("")) {
    throw UsageError(
        "[data.BpeTrainer] special tokens must differ and not be "
        "empty"
    );
  }
  const std::size_t least = 256 + options_.special_tokens.size();
  if (options_.vocab_size < least) {
    throw UsageError(
        fmt::format(
            "[data.BpeTrainer] vocab_size must be at least {} (256 bytes and "
            "the "
            "special tokens), got {}",
            least, options_.vocab_size
        )
    );
  }
  matcher_of(options_);
}

void BpeTrainer::add(std::span<const std::string_view> texts) {
  ThreadPool& pool = shared_pool();
  std::vector<Counts> counts(static_cast<std::size_t>(pool.size()));
  pool.run([&](int worker) {
    const std::unique_ptr<Matcher> matcher = matcher_of(options_);
    Counts& own = counts[static_cast<std::size_t>(worker)];
    const Range part = partition(texts.size(), 1, worker, pool.size());
    std::string word;
    for (std::size_t i = part.begin; i < part.end; ++i) {
      words_of(texts[i], *matcher, [&](std::string_view text) {
        word.assign(text);
        ++own[word];
      });
    }
  });
  for (const Counts& part : counts) {
    for (const auto& [word, count] : part) counts_[word] += count;
  }
}

void BpeTrainer::add_file(const std::string& path, const Progress& progress) {
  const MappedFile file(path);
  const std::string_view text = file.text();
  std::vector<std::string_view> lines;
  std::size_t batch = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1);
    lines.push_back(text.substr(begin, end + 1 - begin));
    batch += end + 1 - begin;
    begin = end + 1;
    if (batch < kBatch && begin < text.size()) continue;
    add(lines);
    lines.clear();
    batch = 0;
    if (progress) progress(begin);
  }
}

std::uint64_t BpeTrainer::words() const {
  std::uint64_t total = 0;
  for (const auto& [word, count] : counts_) total += count;
  return total;
}

std::string BpeTrainer::train(const Progress& progress) const {
  std::vector<std::string> tokens = options_.special_tokens;
  // Bytes in the order of the characters that spell them.
  std::vector<std::pair<std::uint32_t, int>> alphabet;
  for (int b = 0; b < 256; ++b) {
    alphabet.emplace_back(byte_to_character(static_cast<unsigned char>(b)), b);
  }
  std::sort(alphabet.begin(), alphabet.end());
  std::array<std::int32_t, 256> ids;
  for (const auto& [character, byte] : alphabet) {
    std::string spelling;
    append_utf8(spelling, character);
    // A special token may be one of these characters.
    auto known = std::find(tokens.begin(), tokens.end(), spelling);
    ids[static_cast<std::size_t>(byte)] =
        static_cast<std::int32_t>(known - tokens.begin());
    if (known == tokens.end()) tokens.push_back(spelling);
  }
  std::vector<CountedWord> words;
  words.reserve(counts_.size());
  for (const auto& [word, count] : counts_) {
    CountedWord counted{{}, count};
    for (char c : word) {
      counted.symbols.push_back(ids[static_cast<unsigned char>(c)]);
    }
    words.push_back(std::move(counted));
  }
  const std::vector<LearnedMerge> merges = learn_merges(
      std::move(words), tokens, options_.vocab_size, options_.min_frequency,
      progress
  );
  Json out = {
      {"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}
  };
  out["added_tokens"] = added_json(options_.special_tokens);
  out["normalizer"] = nullptr;
  out["pre_tokenizer"] = pre_tokenizer_json(options_.pattern);
  out["post_processor"] = {
      {"type", "ByteLevel"},
      {"add_prefix_space", false},
      {"trim_offsets", true},
      {"use_regex", true}
  };
  out["decoder"] = {
      {"type", "ByteLevel"},
      {"add_prefix_space", true},
      {"trim_offsets", true},
      {"use_regex", true}
  };
  out["model"] = model_json(tokens, merges);
  return to_json_text(out);
}

}  // namespace hearth::text
