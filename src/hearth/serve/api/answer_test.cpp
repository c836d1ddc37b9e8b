// Pieces of an answer that are written without building JSON.
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/serve/api/answer_writer.h"
#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

TEST(AnswerTest, TextPiecesAreWhatStreamPieceWrites) {
  // Ids that look like what is being cut out.
  for (const bool chat : {true, false}) {
    for (const bool usage : {true, false}) {
      const AnswerHead head{"id\"index\":7", "\"TEXT\"", 12, chat};
      const TextPieces pieces(head, usage);
      for (const std::string text :
           {"a", "\"quoted\"\n", "caf\u00E9", "\x01", "\xF0\x9F\x94\xA5"}) {
        for (const int index : {0, 7, 15}) {
          const ChoicePart part{.index = index, .text = text};
          EXPECT_EQ(
              pieces.event(index, text),
              event_line(stream_piece(head, part, usage))
          );
        }
      }
    }
  }
}

TEST(AnswerTest, AWholeAnswerHasWhatClientsRead) {
  const AnswerHead head{"chatcmpl-1", "m", 12, true};
  ChoicePart plain{.index = 0, .text = "hi", .finish = "stop"};
  ChoicePart calls{.index = 1, .finish = "tool_calls"};
  calls.tool_calls = Json::array({{{"id", "c"}}});
  const Json answer = whole_answer(head, {plain, calls}, {10, 4, 3});
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "hi");
  EXPECT_FALSE(answer["choices"][0]["message"].contains("tool_calls"));
  EXPECT_TRUE(answer["choices"][1]["message"]["content"].is_null());
  EXPECT_EQ(answer["choices"][1]["message"]["tool_calls"][0]["id"], "c");
  EXPECT_EQ(answer["usage"]["total_tokens"], 13);
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
}

TEST(AnswerTest, LogProbsNameTokensAndCountCharacters) {
  const auto tokenizer = letters_tokenizer();
  Tokens tokens(3);
  tokens[0] = {.id = 0, .text = "a"};
  tokens[1] = {
      .id = 31, .text = "", .log_prob = -1, .top = {{31, -1}, {1, -2}}
  };
  tokens[2] = {.id = 1, .text = "b", .log_prob = -INFINITY};
  LogProbs what{.tokenizer = tokenizer, .chat = false, .ids = true};
  what.prompt = std::make_shared<Tokens>(Tokens{tokens[0]});
  what.made = {tokens[1], tokens[2]};
  what.echo =
      std::make_shared<PromptEcho>(PromptEcho{.text = "a", .tokens = 1});
  what.offset = 5;
  LogProbsWriter writer(what);
  const Json json = Json::parse(writer.rest());
  EXPECT_EQ(json["tokens"], Json::parse(R"(["a","<end>","b"])"));
  EXPECT_EQ(json["text_offset"], Json::parse("[5,6,6]"));
  EXPECT_TRUE(json["token_logprobs"][0].is_null());
  // JSON has no infinity.
  EXPECT_LT(json["token_logprobs"][2].get<double>(), -1000);
  EXPECT_EQ(json["top_token_ids"][1], Json::parse("[[31,-1.0],[1,-2.0]]"));
  EXPECT_EQ(writer.offset(), 7U);
  EXPECT_TRUE(json["top_logprobs"][0].is_null());
  EXPECT_EQ(json["top_logprobs"][1], Json::parse(R"({"<end>":-1.0,"b":-2.0})"));
}

// However large it is, it comes in pieces, and is the JSON that it was.
TEST(AnswerTest, AnAnswerIsWrittenInPieces) {
  const AnswerHead head{"cmpl-1", "m\"logprobs\":null", 12, false};
  const ChoicePart first{
      .index = 0, .text = "a \"logprobs\":null b", .finish = "length"
  };
  const ChoicePart second{.index = 1, .text = "c", .finish = "stop"};
  LogProbs list{.tokenizer = letters_tokenizer(), .chat = false, .ids = true};
  for (int i = 0; i < 1000; ++i) {
    infer::GeneratedToken token{.id = i % 26, .log_prob = -0.5F};
    for (int a = 0; a < 20; ++a) token.top.push_back({a, -1.25F * float(a)});
    list.made.push_back(token);
  }
  AnswerWriter writer(head, {first, second}, {list, {}}, {3, 0, 1000});
  std::string all;
  std::size_t most = 0;
  int pieces = 0;
  for (bool more = true; more; ++pieces) {
    std::string piece;
    more = writer.next(piece);
    most = std::max(most, piece.size());
    all += piece;
  }
  EXPECT_GT(pieces, 5);
  EXPECT_LT(most, 70'000U);
  const Json json = Json::parse(all);
  Json frame = whole_answer(head, {first, second}, {3, 0, 1000});
  const Json probs = json["choices"][0]["logprobs"];
  ASSERT_EQ(probs["top_logprobs"].size(), 1000U);
  EXPECT_EQ(probs["top_token_ids"][999][19], Json::parse("[19,-23.75]"));
  EXPECT_EQ(probs["token_logprobs"][7], -0.5);
  frame["choices"][0]["logprobs"] = probs;
  EXPECT_EQ(json, frame);
}

TEST(AnswerTest, OffsetsCountTheTextOfSpecialTokensWhereItIsShown) {
  const auto tokenizer = letters_tokenizer();
  const auto token = [](std::int32_t id, const char* text) {
    return infer::GeneratedToken{.id = id, .text = text};
  };
  const Tokens tokens{
      token(31, ""), token(31, ""), token(0, "a"), token(31, ""),
      token(1, "b")  // made
  };
  const auto offsets = [&](const PromptEcho& echo) {
    LogProbs what{.tokenizer = tokenizer, .chat = false};
    what.prompt = std::make_shared<Tokens>(tokens.begin(), tokens.begin() + 4);
    what.made = {tokens[4]};
    what.echo = std::make_shared<PromptEcho>(echo);
    return Json(Json::parse(LogProbsWriter(what).rest())["text_offset"]);
  };
  // The first was put there by the tokenizer, the others were written.
  EXPECT_EQ(offsets({"<end>a<end>", 4, 1, true}), Json::parse("[0,0,5,6,11]"));
  // Given as ids, none of them is shown.
  EXPECT_EQ(offsets({"a", 4, 0, false}), Json::parse("[0,0,0,1,1]"));
  // A text that the tokenizer changed is counted to its end.
  EXPECT_EQ(offsets({"a      ", 4, 1, true}), Json::parse("[0,0,0,1,7]"));
}

}  // namespace
}  // namespace hearth::serve
