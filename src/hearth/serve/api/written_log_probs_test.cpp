// Log probabilities as they are written: JSON, where there is no infinity, with
// places counted in characters.
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/serve/api/log_probs_writer.h"
#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

TEST(WrittenLogProbs, AreNumbersAndOffsetsCharacters) {
  Tokens tokens(3);
  tokens[0] = {.id = 0, .text = "\u00E9", .log_prob = -INFINITY};
  tokens[1] = {.id = 1, .text = "\U0001F525x", .log_prob = -1};
  tokens[2] = {.id = 2, .text = "c", .log_prob = -2};
  LogProbsWriter completion(
      {.tokenizer = letters_tokenizer(), .chat = false, .made = tokens}
  );
  const Json written = Json::parse(completion.rest());
  EXPECT_EQ(written["text_offset"], Json::parse("[0,1,3]"));
  EXPECT_EQ(completion.offset(), 4U);
  ASSERT_TRUE(written["token_logprobs"][0].is_number());
  EXPECT_LT(written["token_logprobs"][0].get<double>(), -1000);
  const Json chat = Json::parse(
      LogProbsWriter({.tokenizer = letters_tokenizer(), .made = tokens}).rest()
  );
  EXPECT_TRUE(chat["content"][0]["logprob"].is_number());
}

}  // namespace
}  // namespace hearth::serve
