#include "hearth/text/tokenizer/tokenizer.h"

#include <filesystem>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/text/tokenizer/bpe_trainer.h"
#include "hearth/text/tokenizer/stream_decoder.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

using Ids = std::vector<std::int32_t>;
namespace fs = std::filesystem;

fs::path shared_data() {
  const fs::path root = HEARTH_SOURCE_DIR;
  const fs::path beside = root / "../shared/data";
  return fs::exists(beside) ? beside : root / "../../shared/data";
}

// Ids worked out by hand: h e l l o with merges (l,l) (h,e) (he,ll).
const char* const kTiny = R"({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [{"id": 9, "content": "<s>", "single_word": false,
    "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
    "trim_offsets": true, "use_regex": true},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [], "special_tokens":
      {"<s>": {"id": "<s>", "ids": [9], "tokens": ["<s>"]}}},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "unk_token": null, "vocab": {"h": 0, "e": 1,
    "l": 2, "o": 3, "ll": 4, "he": 5, "hell": 6, "Ã": 7, "©": 8},
    "merges": ["l l", ["h", "e"], "he ll"]}})";

std::string replaced(
    std::string text,
    std::string_view from,
    std::string_view to
) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Tokenizer, EncodesAndDecodes) {
  const auto t = Tokenizer::from_json(kTiny, "tiny");
  EXPECT_EQ(t->encode("hello"), (Ids{9, 6, 3}));
  EXPECT_EQ(t->encode("hello", {.add_special = false}), (Ids{6, 3}));
  EXPECT_EQ(t->encode("<s>\u00E9", {.add_special = false}), (Ids{9, 7, 8}));
  EXPECT_EQ(t->decode(Ids{6, 3, 7, 8}), "hello\u00E9");
  EXPECT_EQ(t->decode(Ids{9, 6, 7}), "<s>hell\uFFFD");
  EXPECT_EQ(t->decode(Ids{9, 6, 123456, -4}, true), "hell");
  EXPECT_EQ(t->vocab_size(), 10u);
  EXPECT_EQ(t->token_to_id("<s>"), 9);
  EXPECT_EQ(t->id_to_token(6), "hell");
  EXPECT_EQ(t->id_to_token(77), std::nullopt);
  EXPECT_TRUE(t->is_special(9));
  EXPECT_EQ(t->token_bytes(7), "\xC3");
}

TEST(Tokenizer, TakesTheTextOfASpecialTokenForTextWhereItIsTold) {
  const std::string wider =
      replaced(kTiny, R"("h": 0)", R"("h": 0, "<": 9, "s": 10, ">": 11)");
  const auto t = Tokenizer::from_json(
      replaced(wider, R"("id": 9)", R"("id": 12)"), "tiny"
  );
  const auto encoded = [&](const std::vector<std::size_t>& plain_at) {
    return t->encode(
        "<s>h<s><s>", {.add_special = false, .plain_at = plain_at}
    );
  };
  EXPECT_EQ(encoded({}), (Ids{12, 0, 12, 12}));
  EXPECT_EQ(encoded({4}), (Ids{12, 0, 9, 10, 11, 12}));
  EXPECT_EQ(encoded({0, 4, 7}), (Ids{9, 10, 11, 0, 9, 10, 11, 9, 10, 11}));
  EXPECT_EQ(encoded({1, 5}), (Ids{12, 0, 12, 12}));
}

TEST(Tokenizer, FollowsTheBlocksOnlyWhenAsked) {
  std::string text = replaced(
      kTiny, R"("truncation": null)",
      R"("truncation": {"max_length": 3, "direction": "Right"})"
  );
  text = replaced(
      text, R"("padding": null)",
      R"("padding": {"strategy": {"Fixed": 5}, "direction": "Left",
         "pad_id": 1})"
  );
  const auto t = Tokenizer::from_json(text, "tiny");
  EXPECT_EQ(t->encode("ohoho").size(), 6u);
  EXPECT_EQ(
      t->encode("ohoho", {.truncate = true, .pad = true}), (Ids{1, 1, 9, 3, 0})
  );
}

TEST(Tokenizer, TruncationOfASecondTextRefusesALongFirst) {
  const auto t = Tokenizer::from_json(
      replaced(
          kTiny, R"("truncation": null)",
          R"("truncation": {"max_length": 3, "strategy": "OnlySecond"})"
      ),
      "tiny"
  );
  EXPECT_EQ(t->encode("oh", {.truncate = true}), (Ids{9, 3, 0}));
  EXPECT_EQ(t->encode("oho").size(), 4u);
  EXPECT_THROW((void)t->encode("oho", {.truncate = true}), UsageError);
}

// Worked out by hand from the steps: '▁' is replaced before bytes are joined,
// a run of bytes that is not UTF-8 gives one U+FFFD a byte, a token that is
// left out ends no run, and one space goes at the start.
constexpr const char* kChain =
    R"({"added_tokens": [{"id": 6, "content": "<s>", "single_word": false,
        "lstrip": false, "rstrip": false, "normalized": false,
        "special": true}],
      "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
      "model": {"type": "BPE", "byte_fallback": true, "merges": [], "vocab":
        {"\u2581hi": 0, "<0xE2>": 1, "<0x96>": 2, "<0x81>": 3, "<0xFF>": 4,
         "\u2581\u2581": 5, "<s>": 6}}})";

TEST(Tokenizer, DecodesSentencePieceStyleChains) {
  const auto t = Tokenizer::from_json(kChain, "chain");
  EXPECT_EQ(t->decode(Ids{0, 0}), "hi hi");
  EXPECT_EQ(t->decode(Ids{5, 0}), "  hi");
  EXPECT_EQ(t->decode(Ids{1, 2, 3, 0}), "\u2581 hi");
  EXPECT_EQ(t->decode(Ids{0, 1, 4}), "hi\uFFFD\uFFFD");
  EXPECT_EQ(t->decode(Ids{1, 6, 2, 3}, true), "\u2581");
  EXPECT_EQ(t->decode(Ids{1, 6}), "\uFFFD<s>");
  EXPECT_EQ(t->decode(Ids{1, 99, 2, 3, -1}), "\u2581");
  EXPECT_EQ(t->decode(Ids{}), "");
}

TEST(StreamDecoder, ACutTextEndsWithAWholeCharacter) {
  const auto bytes = Tokenizer::from_json(kTiny, "tiny");
  const auto chain = Tokenizer::from_json(kChain, "chain");
  const auto ended = [](const auto& tokenizer, const Ids& ids) {
    StreamDecoder stream(tokenizer);
    std::string all;
    for (const std::int32_t id : ids) all += stream.push(id);
    return all + stream.finish_whole();
  };
  EXPECT_EQ(ended(bytes, {6, 7}), "hell");
  EXPECT_EQ(ended(bytes, {6, 7, 8}), "hell\u00E9");
  EXPECT_EQ(ended(chain, {0, 1}), "hi");
  EXPECT_EQ(ended(chain, {0, 1, 2}), "hi");
  EXPECT_EQ(ended(chain, {0, 1, 2, 3}), "hi\u2581");
  // What can never become a character is no beginning of one.
  EXPECT_EQ(ended(chain, {0, 4}), "hi\uFFFD");
}

// Each must be refused, with a line that says what is wrong.
TEST(Tokenizer, RefusesBrokenFiles) {
  const struct {
    const char *from, *to, *says;
  } cases[] = {
      {"\"BPE\"", "\"BPE2\"", "model type \"BPE2\" is not known"},
      {"\"type\": \"ByteLevel\"", "\"type\": \"Odd\"",
       "pre_tokenizer type \"Odd\" is not known"},
      {"\"normalizer\": null", "\"normalizer\": {\"type\": \"X\"}",
       "normalizer type \"X\" is not known"},
      {"\"TemplateProcessing\"", "\"Y\"",
       "post_processor type \"Y\" is not known"},
      {"{\"type\": \"ByteLevel\"}", "{\"type\": \"Z\"}",
       "decoder type \"Z\" is not known"},
      {"\"h\": 0", "\"h\": -1", "token id -1 is out of range"},
      {"\"h\": 0", "\"h\": 99999999999", "out of range"},
      {"\"h\": 0", "\"h\": 1.5", "whole number"},
      {"\"h\": 0", "\"h\": \"0\"", "a number must stand here"},
      {"he ll\"", "he xx\"", "\"xx\", which is not in the vocabulary"},
      {"l l\"", "l l l\"", "two tokens"},
      {"\"merges\"", "\"murges\"", "needs a vocabulary object and merges"},
      {"\"vocab\"", "\"vocap\"", "no \"vocab\""},
      {"\"ids\": [9]", "\"ids\": [-9]", "out of range"},
      {"\"<s>\": {", "\"<t>\": {", "\"<s>\" is not listed"},
      {"\"truncation\": null", "\"truncation\": {\"max_length\": -1}",
       "out of range"},
      {"\"padding\": null", "\"padding\": {\"strategy\": \"W\"}", "strategy"},
      {"\"id\": 9", "\"ix\": 9", "no id"},
      {"\"e\": 1", "\"e\": 1 \"f\": 2", "',' or '}' must stand here"},
      {"\"Ã\": 7", "\"\xC3\": 7", "UTF-8"},
      {"\"o\": 3", "\"\\ud800\": 3", "surrogate"},
      {"\"o\": 3", "\"\\x\": 3", "escape"},
  };
  for (const auto& c : cases) {
    try {
      Tokenizer::from_json(replaced(kTiny, c.from, c.to), "dir/tokenizer.json");
      ADD_FAILURE() << "accepted " << c.to;
    } catch (const FormatError& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.find("dir/tokenizer.json"), 0u) << what;
      EXPECT_NE(what.find(c.says), what.npos) << what;
      EXPECT_EQ(what.find('\n'), what.npos) << what;
    }
  }
  for (std::size_t size = 0; size + 1 < std::string(kTiny).size(); size += 7) {
    EXPECT_THROW(
        Tokenizer::from_json(std::string(kTiny).substr(0, size), "cut"),
        FormatError
    );
  }
  const std::string deep(100000, '[');
  EXPECT_THROW(Tokenizer::from_json("{\"a\":" + deep, "deep"), FormatError);
}

TEST(Tokenizer, RefusesBrokenSentencePiece) {
  const fs::path file =
      shared_data() / "weights/stories260K-hf/tokenizer.model";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not there";
  const std::string bytes = read_text_file(file.string());
  EXPECT_GT(Tokenizer::from_sentencepiece(bytes, "m")->vocab_size(), 500u);
  EXPECT_THROW(Tokenizer::from_sentencepiece("", "m"), FormatError);
  EXPECT_THROW(Tokenizer::from_sentencepiece("{\"a\": 1}", "m"), FormatError);
  std::mt19937 rng(6);
  for (int i = 0; i < 300; ++i) {
    std::string broken = bytes.substr(0, rng() % bytes.size());
    if (i % 2) broken = bytes;
    for (int k = 0; k < 5 && !broken.empty(); ++k) {
      broken[rng() % broken.size()] = static_cast<char>(rng());
    }
    try {
      Tokenizer::from_sentencepiece(broken, "m")->encode("Once upon a time");
    } catch (const Error&) {
    }
  }
}

TEST(Tokenizer, MissingFilesAreNamed) {
  EXPECT_THROW(Tokenizer::load("/no/such/tokenizer.json"), IoError);
  try {
    Tokenizer::load(HEARTH_SOURCE_DIR "/src");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("neither"), std::string::npos);
  }
}

std::vector<std::string> split(
    const std::string& text,
    const std::string& mark
) {
  std::vector<std::string> out;
  std::size_t begin = 0, at = 0;
  while ((at = text.find(mark, begin)) != text.npos) {
    out.push_back(text.substr(begin, at - begin));
    begin = at + mark.size();
  }
  out.push_back(text.substr(begin));
  return out;
}

// The encodings llama.cpp tests itself with.
TEST(Tokenizer, AgreesWithLlamaCpp) {
  const fs::path folder = shared_data() / "fixtures/gguf-vocab";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not there";
  int files = 0;
  for (const std::string name :
       {"deepseek-coder", "gpt-2", "llama-spm", "phi-3"}) {
    const std::string base =
        (folder / ("ggml-vocab-" + name + ".gguf")).string();
    const auto tokenizer = Tokenizer::load(base);
    const auto texts =
        split(read_text_file(base + ".inp"), "\n__ggml_vocab_test__\n");
    const auto lines = split(read_text_file(base + ".out"), "\n");
    ASSERT_EQ(texts.size(), lines.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      Ids want;
      for (const std::string& word : split(lines[i], " ")) {
        if (!word.empty()) want.push_back(std::stoi(word));
      }
      EXPECT_EQ(
          tokenizer->encode(
              texts[i], {.add_special = false, .parse_special = false}
          ),
          want
      ) << name
        << " " << i;
    }
    ++files;
  }
  EXPECT_EQ(files, 4);
}

TEST(StreamDecoder, GivesWholeCharactersThatAddUp) {
  const fs::path folder = shared_data() / "tokenizers";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const std::string text =
      "caf\u00E9 \U0001F468\u200D\U0001F469\u200D\U0001F467 \u4F60\u597D "
      "\U00020000\u1112\u1161\u11AB\n  x\uFFFDy <s>";
  for (const char* name : {"gpt2", "qwen2_5", "mistral-v0.1", "minimind"}) {
    const auto tokenizer = Tokenizer::load((folder / name).string());
    const Ids ids = tokenizer->encode(text, {.add_special = false});
    StreamDecoder stream(tokenizer);
    std::string all;
    for (const std::int32_t id : ids) {
      const std::string part = stream.push(id);
      EXPECT_TRUE(is_valid_utf8(part)) << name;
      all += part;
      EXPECT_TRUE(tokenizer->decode(ids).starts_with(all)) << name;
    }
    EXPECT_EQ(all + stream.finish(), tokenizer->decode(ids)) << name;
    // Half a character at the end comes out broken, once.
    const Ids cut(ids.begin(), ids.begin() + 3);
    all.clear();
    for (const std::int32_t id : cut) all += stream.push(id);
    EXPECT_EQ(all + stream.finish(), tokenizer->decode(cut)) << name;
  }
}

TEST(Tokenizer, ThreadsAgree) {
  const fs::path file = shared_data() / "text/tinyshakespeare.txt";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not there";
  const std::string text = read_text_file(file.string()).substr(0, 200000);
  const auto t = Tokenizer::load((shared_data() / "tokenizers/gpt2").string());
  const Ids want = t->encode(text);
  std::vector<Ids> got(4);
  {
    std::vector<std::jthread> threads;
    for (Ids& out : got) {
      threads.emplace_back([&] {
        for (std::size_t i = 0; i < text.size(); i += 20000) {
          (void)t->encode(std::string_view(text).substr(i, 777));
        }
        out = t->encode(text);
      });
    }
  }
  for (const Ids& ids : got) EXPECT_EQ(ids, want);
}

TEST(BpeTrainer, WritesWhatTokenizerReads) {
  BpeTrainer trainer({.vocab_size = 280, .special_tokens = {"<a>", "<b>"}});
  const std::string_view texts[] = {"hello hello help", " hello\n\n"};
  trainer.add(texts);
  EXPECT_EQ(trainer.words(), 5u);
  const std::string json = trainer.train();
  const auto t = Tokenizer::from_json(json, "trained");
  EXPECT_EQ(t->token_to_id("<a>"), 0);
  EXPECT_EQ(t->token_to_id("<b>"), 1);
  // It occurs twice with a space before it, once without.
  EXPECT_TRUE(t->token_to_id("\u0120hello").has_value());
  EXPECT_FALSE(t->token_to_id("hello").has_value());
  EXPECT_EQ(
      t->decode(t->encode("hello <b> help\xF0\x9F\x98\x80")),
      "hello <b> help\xF0\x9F\x98\x80"
  );
  // The order of the texts does not matter.
  BpeTrainer other({.vocab_size = 280, .special_tokens = {"<a>", "<b>"}});
  const std::string_view reversed[] = {" hello\n\n", "hello hello help"};
  other.add(reversed);
  EXPECT_EQ(other.train(), json);
}

TEST(BpeTrainer, RefusesWhatCannotBe) {
  EXPECT_THROW(BpeTrainer({.vocab_size = 100}), UsageError);
  EXPECT_THROW(BpeTrainer({.special_tokens = {"a", "a"}}), UsageError);
  EXPECT_THROW(BpeTrainer({.special_tokens = {""}}), UsageError);
  EXPECT_THROW(BpeTrainer({.pattern = "("}), FormatError);
}

}  // namespace
}  // namespace hearth::text
