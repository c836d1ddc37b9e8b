#include "hearth/serve/answer.h"

#include <cmath>

#include <gtest/gtest.h>

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
  std::size_t offset = 5;
  const PromptEcho echo{.text = "a", .tokens = 1};
  const Json json =
      completion_log_probs(tokens, *tokenizer, true, &echo, offset);
  EXPECT_EQ(json["tokens"], Json::parse(R"(["a","<end>","b"])"));
  EXPECT_EQ(json["text_offset"], Json::parse("[5,6,6]"));
  EXPECT_TRUE(json["token_logprobs"][0].is_null());
  // JSON has no infinity.
  EXPECT_LT(json["token_logprobs"][2].get<double>(), -1000);
  EXPECT_EQ(json["top_token_ids"][1], Json::parse("[[31,-1.0],[1,-2.0]]"));
  EXPECT_EQ(offset, 7U);
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
    std::size_t offset = 0;
    return completion_log_probs(
        tokens, *tokenizer, false, &echo, offset
    )["text_offset"];
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
