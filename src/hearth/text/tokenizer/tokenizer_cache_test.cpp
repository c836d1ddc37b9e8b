#include "hearth/text/tokenizer/tokenizer_cache.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/text/tokenizer/bpe_trainer.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::text {
namespace {

namespace fs = std::filesystem;

const char* const kTexts[] = {
    "Once upon a time, there was a caf\u00E9.  It's 1984!\n\n\tint x = 3;",
    "\u4F60\u597D \u3053\u3093 \U0001F469\u200D\U0001F4BB \u0645\u0631\u062D",
    "<|im_start|>user\n<s></s><|endoftext|> [INST] a  b\xFF\xC3(",
    "",
};

// Bytes where a mapped file would have them.
class Aligned {
 public:
  explicit Aligned(std::string_view bytes)
      : words_(bytes.size() / sizeof(Line) + 1), size_(bytes.size()) {
    std::memcpy(words_.data(), bytes.data(), bytes.size());
  }
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(words_.data()), size_};
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> words_;
  std::size_t size_;
};

std::string small_tokenizer() {
  BpeTrainer trainer({.vocab_size = 300, .special_tokens = {"<|end|>"}});
  const std::string_view texts[] = {"the cat sat on the mat, the cat sat"};
  trainer.add(texts);
  return trainer.train();
}

std::string cache_of(const std::string& text) {
  std::string rest;
  TokenizerParts parts = read_tokenizer_json(text, "small", &rest);
  parts.decode_ahead();
  return tokenizer_cache_bytes(parts, rest, {1, 2});
}

std::string refusal(std::span<const std::byte> bytes, Hash128 source) {
  try {
    parse_tokenizer_cache(bytes, source, "cache.bin");
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

TEST(TokenizerCache, GivesTheTokensOfItsSource) {
  const fs::path root = fs::path(HEARTH_SOURCE_DIR) / "../shared/data";
  std::vector<std::string> sources = {small_tokenizer()};
  for (const char* name : {"gpt2", "qwen2_5", "mistral-v0.1", "smollm2"}) {
    const fs::path file = root / "tokenizers" / name / "tokenizer.json";
    if (fs::exists(file)) sources.push_back(read_text_file(file.string()));
  }
  for (const std::string& source : sources) {
    const auto plain = Tokenizer::from_json(source, "source");
    Aligned copy(cache_of(source));
    const Tokenizer cached(
        parse_tokenizer_cache(copy.bytes(), {1, 2}, "cache.bin")
    );
    for (const char* text : kTexts) {
      const auto ids = plain->encode(text);
      EXPECT_EQ(cached.encode(text), ids);
      EXPECT_EQ(cached.decode(ids), plain->decode(ids));
    }
    EXPECT_EQ(cached.vocab_size(), plain->vocab_size());
    EXPECT_EQ(cached.special_ids(), plain->special_ids());
    ASSERT_EQ(cached.id_limit(), plain->id_limit());
    for (std::size_t i = 0; i < plain->id_limit(); ++i) {
      const auto id = static_cast<std::int32_t>(i);
      ASSERT_EQ(cached.id_to_token(id), plain->id_to_token(id));
      ASSERT_EQ(cached.token_bytes(id), plain->token_bytes(id));
    }
  }
}

TEST(TokenizerCache, RefusesWhatIsNotWhole) {
  const std::string good = cache_of(small_tokenizer());
  Aligned whole(good);
  EXPECT_EQ(refusal(whole.bytes(), {1, 2}), "");
  EXPECT_NE(
      refusal(whole.bytes(), {1, 3}).find("another tokenizer"),
      std::string::npos
  );
  for (std::size_t size = 0; size < good.size(); size += 1 + size / 7) {
    Aligned cut(std::string_view(good).substr(0, size));
    EXPECT_NE(refusal(cut.bytes(), {1, 2}).find("cut short"), std::string::npos)
        << size;
  }
  std::mt19937 rng(1);
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    bad[rng() % bad.size()] ^= static_cast<char>(1 << rng() % 8);
    Aligned copy(bad);
    EXPECT_NE(refusal(copy.bytes(), {1, 2}), "");
  }
}

// With a right checksum anything may be in it: refused, or used unharmed.
TEST(TokenizerCache, HostileTablesDoNoHarm) {
  const std::string good = cache_of(small_tokenizer());
  std::mt19937 rng(2);
  int used = 0;
  for (int i = 0; i < 3000; ++i) {
    Aligned copy(good);
    const int edits = 1 + static_cast<int>(rng() % 4);
    for (int e = 0; e < edits; ++e) {
      const auto at = rng() % (i % 2 ? 160 : good.size());
      copy.bytes()[at] = static_cast<std::byte>(rng() % 3 ? rng() : 0xFF);
    }
    seal_tokenizer_cache(copy.bytes());
    try {
      const Tokenizer t(parse_tokenizer_cache(copy.bytes(), {1, 2}, "x"));
      for (const char* text : kTexts) (void)t.decode(t.encode(text));
      ++used;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(used, 0);
}

TEST(TokenizerCache, ABrokenFileIsMadeAgain) {
  const TempFolder folder;
  ::setenv("HEARTH_CACHE", (folder / "c").c_str(), 1);
  // Only sources of some size are kept.
  const std::string text =
      small_tokenizer() + std::string(kCachedSourceBytes, ' ');
  const std::string source = folder.write("tokenizer.json", text);
  const std::string file = tokenizer_cache_file(text);
  const auto ids = Tokenizer::load(source)->encode("the cat");
  const std::string whole = read_all(file);
  EXPECT_GT(whole.size(), 1000u);
  EXPECT_EQ(Tokenizer::load(source)->encode("the cat"), ids);
  write_file_atomically(file, whole.substr(0, 900));
  std::string note;
  const LogSink before =
      set_log_sink([&](const LogRecord& r) { note = r.text; });
  EXPECT_EQ(Tokenizer::load(source)->encode("the cat"), ids);
  set_log_sink(before);
  EXPECT_NE(note.find("cut short; it is made again"), std::string::npos)
      << note;
  EXPECT_EQ(read_all(file), whole);
  ::unsetenv("HEARTH_CACHE");
}

}  // namespace
}  // namespace hearth::text
