#include "hearth/data/read/dataset_record.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"
#include "hearth/data/read/dataset_test_impl.h"
#include "hearth/text/json_cursor.h"

namespace hearth::data {
namespace {

Record parse(std::string_view line) {
  static const ReadSettings settings;
  Record record;
  RecordParser(settings).parse(line, FileFormat::kJsonl, record);
  return record;
}

std::string refusal(std::string_view line) {
  try {
    parse(line);
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

TEST(DatasetRecord, Kinds) {
  using Kind = Record::Kind;
  EXPECT_EQ(parse(R"({"text":"a","meta":{"text":"no"}})").text, "a");
  const auto completion =
      parse(R"({"prompt":"p","completion":"c","text":"t"})");
  EXPECT_EQ(completion.kind, Kind::kCompletion);
  EXPECT_TRUE(completion.text.empty());
  const auto chat = parse(
      R"({"tools":[{"a":1}],"messages":[{"role":"user","content":null}]})"
  );
  EXPECT_EQ(chat.kind, Kind::kChat);
  EXPECT_EQ(chat.tools.size(), 1u);
  const auto pair =
      parse(R"({"prompt":"p","chosen":"a","rejected":"b","completion":null})");
  EXPECT_EQ(pair.kind, Kind::kPreference);
  EXPECT_EQ(pair.rejected, "b");
}

TEST(DatasetRecord, AnInputFollowsThePrompt) {
  ReadSettings settings;
  settings.fields.prompt = "instruction";
  settings.fields.completion = "output";
  settings.fields.input = "input";
  RecordParser parser(settings);
  Record record;
  parser.parse(
      R"({"input":"freind","instruction":"Correct.","output":"friend"})",
      FileFormat::kJsonl, record
  );
  EXPECT_EQ(record.prompt, "Correct.\n\nfreind");
  EXPECT_EQ(record.completion, "friend");
  parser.parse(
      R"({"instruction":"Correct.","input":"","output":"friend"})",
      FileFormat::kJsonl, record
  );
  EXPECT_EQ(record.prompt, "Correct.");
}

TEST(DatasetRecord, WhatIsWrongIsSaid) {
  EXPECT_NE(refusal("[1]").find("jq -c"), std::string::npos);
  EXPECT_NE(
      refusal(R"({"text": 5})").find("\"text\" must be a string"),
      std::string::npos
  );
  EXPECT_NE(refusal("{}").find("a record must have"), std::string::npos);
  EXPECT_NE(
      refusal(R"({"messages":[]})").find("must have a message"),
      std::string::npos
  );
  EXPECT_NE(
      refusal(R"({"messages":[{"content":"x"}]})").find("role"),
      std::string::npos
  );
  EXPECT_NE(refusal(R"({"text":"a")"), "");
  EXPECT_NE(refusal(R"({"text":"a"} x)"), "");
  const std::string deep(100, '[');
  EXPECT_NE(refusal("{\"a\":" + deep).find("64 levels"), std::string::npos);
}

TEST(DatasetRecord, HashIsOfContentOnly) {
  const auto hash = [](std::string_view line) {
    return parse(line).content_hash();
  };
  EXPECT_EQ(hash(R"({"text":"a"})"), hash(R"({ "id": 3, "text" : "\u0061" })"));
  EXPECT_NE(hash(R"({"text":"a"})"), hash(R"({"text":"b"})"));
  EXPECT_NE(
      hash(R"({"prompt":"a","completion":"b"})"),
      hash(R"({"prompt":"ab","completion":""})")
  );
}

// base/json.h is the reference for what is JSON and what it says.
TEST(DatasetJson, AgreesWithTheGeneralParser) {
  RandomStream random{RandomKey(11)};
  const std::string_view pieces[] = {
      "{",
      "}",
      "[",
      "]",
      ":",
      ",",
      "\"a\"",
      "\"\\n\"",
      "1",
      "-0",
      "01",
      "1e5",
      "1.",
      ".5",
      "true",
      "false",
      "nul",
      "null",
      "\"\\u00e9\"",
      "\"\\x\"",
      " ",
      "\t",
      "\"\x01\"",
      "\"é\"",
      "\"\\ud83d\\ude00\"",
      "1E+",
      "-",
      "12345678901234567890",
      "1e999"
  };
  int valid = 0;
  for (int round = 0; round < 60000; ++round) {
    std::string text = random.below(2) ? "[" : "{\"k\":";
    const auto count = random.below(6);
    for (std::uint64_t i = 0; i < count; ++i) {
      text += pieces[random.below(std::size(pieces))];
    }
    if (random.below(2)) text += text[0] == '[' ? ']' : '}';
    Json expected, got;
    bool ok = true, accepted = true;
    try {
      expected = parse_json(text, "t");
    } catch (const FormatError&) {
      ok = false;
    }
    try {
      text::JsonCursor cursor(text);
      got = cursor.value();
      cursor.end();
      text::JsonCursor skipper(text);
      EXPECT_EQ(skipper.skip().front(), text.front());
      skipper.end();
    } catch (const FormatError&) {
      accepted = false;
    }
    ASSERT_EQ(ok, accepted) << text;
    ASSERT_TRUE(!ok || expected == got) << text;
    valid += ok;
  }
  EXPECT_GT(valid, 3000);
}

TEST(DatasetJson, LoneSurrogatesBecomeReplacementCharacters) {
  const auto record = parse(R"({"text":"a\ud800b\udc00\ud800\u0041"})");
  EXPECT_EQ(record.text, "a\uFFFDb\uFFFD\uFFFDA");
  EXPECT_EQ(record.replaced, 3u);
}

TEST(DatasetRecord, InvalidUtf8IsReplacedAndCounted) {
  const auto record = parse("{\"text\": \"a\xff\uFFFDb\xe2\x82z\"}");
  EXPECT_EQ(record.text, "a\uFFFD\uFFFDb\uFFFDz");
  EXPECT_EQ(record.replaced, 2u);
}

TEST(DatasetEncode, MasksFollowTurnsAndMessages) {
  const auto chat = parse(
      R"({"messages":[{"role":"user","content":"u"},)"
      R"({"role":"assistant","content":"AA"},{"role":"user","content":"v"},)"
      R"({"role":"assistant","content":"BB","train":false},)"
      R"({"role":"assistant","content":"CC"}]})"
  );
  const std::string text =
      "<user>u<assistant>AA<user>v<assistant>BB<assistant>CC";
  auto spans = [&](MaskMode mode) {
    EncodeSettings settings;
    settings.mask = mode;
    std::vector<EncodedDocument> out;
    testing::byte_encoder(settings).encode(chat, out);
    EXPECT_EQ(testing::ByteEncoder().decode(out[0].ids), text);
    std::string masked;
    for (const auto& s : out[0].spans) {
      masked += text.substr(s.begin, s.end - s.begin) + "|";
    }
    return masked;
  };
  EXPECT_EQ(spans(MaskMode::kAssistant), "AA|CC|");
  EXPECT_EQ(spans(MaskMode::kLast), "CC|");
  EXPECT_EQ(spans(MaskMode::kAll), text + "|");
}

TEST(DatasetEncode, CompletionWithoutTemplateAndTruncation) {
  EncodeSettings settings;
  settings.max_tokens = 5;
  const ExampleEncoder encoder(
      std::make_shared<testing::ByteEncoder>(), nullptr, settings
  );
  std::vector<EncodedDocument> out;
  encoder.encode(parse(R"({"prompt":"pq","completion":"xyz"})"), out);
  encoder.encode(parse(R"({"prompt":"pqrstu","completion":"x"})"), out);
  // bos p q x y, cut before z and the end.
  ASSERT_EQ(out[0].ids.size(), 5u);
  EXPECT_TRUE(out[0].truncated);
  ASSERT_EQ(out[0].spans.size(), 1u);
  EXPECT_EQ(out[0].spans[0], (io::TokenSpan{3, 5}));
  EXPECT_TRUE(out[1].spans.empty());
  EXPECT_THROW(
      encoder.encode(
          parse(R"({"messages":[{"role":"user","content":"u"}]})"), out
      ),
      FormatError
  );
}

}  // namespace
}  // namespace hearth::data
