#include "hearth/text/tokenizer/stream_decoder.h"

#include <random>

#include <gtest/gtest.h>

namespace hearth::text {
namespace {

using Ids = std::vector<std::int32_t>;

std::string block(char key, const std::string& bytes) {
  return {key + std::string(1, static_cast<char>(bytes.size())) + bytes};
}

// One piece of a SentencePiece model; types: 1 normal, 2 unknown, 3 control,
// 6 byte.
std::string piece(const std::string& text, char type = 1) {
  return block('\x0A', block('\x0A', text) + "\x18" + type);
}

// 0 <unk>, 1 <s>, 2 a space, 3 two spaces, 4 " a", 5 "b", 6 and 7 the bytes of
// e with an acute accent.
std::shared_ptr<const Tokenizer> model(bool dummy_prefix, bool squeeze) {
  std::string bytes = piece("<unk>", 2) + piece("<s>", 3);
  for (const char* text : {"\u2581", "\u2581\u2581", "\u2581a", "b"}) {
    bytes += piece(text);
  }
  bytes += piece("<0xC3>", 6) + piece("<0xA9>", 6);
  std::string trainer = "\x18\x02", normalizer = "\x18";
  normalizer += static_cast<char>(dummy_prefix);
  normalizer += "\x20";
  normalizer += static_cast<char>(squeeze);
  bytes += block('\x12', trainer) + block('\x1A', normalizer);
  return Tokenizer::from_sentencepiece(bytes, "made");
}

std::string streamed(StreamDecoder& stream, const Ids& ids) {
  std::string out;
  for (const std::int32_t id : ids) out += stream.push(id);
  return out + stream.finish();
}

TEST(StreamDecoder, KeepsRunsOfSpaces) {
  const auto tokenizer = model(true, true);
  StreamDecoder stream(tokenizer, true);
  EXPECT_EQ(streamed(stream, {4, 2, 2, 2, 5}), "a   b");
  EXPECT_EQ(streamed(stream, {5, 1, 4, 1, 1, 2, 2, 5}), "b a  b");
  EXPECT_EQ(streamed(stream, {2, 2, 5, 2, 2, 6, 7, 2}), "b  \u00E9 ");
}

TEST(StreamDecoder, AddsUpToWhatDecodeGives) {
  std::mt19937 rng(7);
  for (int settings = 0; settings < 4; ++settings) {
    const auto tokenizer = model(settings % 2 == 0, settings / 2 == 0);
    for (int round = 0; round < 500; ++round) {
      Ids ids;
      for (unsigned n = rng() % 16; n > 0; --n) {
        // Half of them spaces; characters of two bytes are whole.
        const auto id = static_cast<std::int32_t>(rng() % 10);
        ids.push_back(id > 7 ? 2 : id == 7 ? 6 : id);
        if (ids.back() == 6) ids.push_back(7);
      }
      StreamDecoder stream(tokenizer, true);
      EXPECT_EQ(streamed(stream, ids), tokenizer->decode(ids, true));
    }
  }
}

TEST(StreamDecoder, WhatContinuesATextKeepsItsFirstSpaces) {
  for (int settings = 0; settings < 4; ++settings) {
    const auto tokenizer = model(settings % 2 == 0, settings / 2 == 0);
    StreamDecoder stream(tokenizer, true);
    stream.continue_text();
    EXPECT_EQ(streamed(stream, {2, 2, 4, 5}), "   ab");
    // The next text is a text of its own.
    EXPECT_EQ(streamed(stream, {4}), settings == 3 ? " a" : "a");
  }
}

}  // namespace
}  // namespace hearth::text
