// A grammar's mask in a job and in an engine: what may come, what is told of
// it, and whose stop ids end it.
#include <cmath>
#include <future>

#include <gtest/gtest.h>

#include "hearth/infer/engine/fake_runner_test.h"
#include "hearth/infer/engine/job.h"
#include "hearth/infer/engine/letters_test.h"

namespace hearth::infer {
namespace {

struct Told {
  std::vector<GeneratedToken> tokens;
  std::string text;
  Finish finish = Finish::cancelled;
};

// The model would write z, and a a little less, whatever came before.
Told written(Request request) {
  const auto tokenizer = letters();
  request.prompt = {3}, request.stop_ids = {31};
  Told told;
  Job job(
      1, std::move(request),
      [&](const Event& e) {
        if (e.kind == Event::Kind::end) told.finish = e.finish;
        if (e.kind != Event::Kind::token) return;
        told.tokens.push_back(e.token);
        told.text += e.token.text;
      },
      tokenizer, letter_words()
  );
  std::vector<float> logits(32, 0);
  logits[25] = 9, logits[0] = 5, logits[1] = 4;
  for (int i = 0; i < 50; ++i) {
    if (job.take(logits, 1000)) break;
  }
  return told;
}

TEST(MaskedJob, WritesWhatTheGrammarAllowsAndNothingElse) {
  Request request;
  request.grammar = text::grammar_of_regex("[ab]{3}");
  const Told told = written(request);
  EXPECT_EQ(told.text, "aaa");
  EXPECT_EQ(told.finish, Finish::stop);
  request.grammar = nullptr, request.max_tokens = 4;
  EXPECT_EQ(written(request).text, "zzzz");
}

// Log probabilities are the model's own: of z too, which cannot come.
TEST(MaskedJob, LogProbsAreOfWhatTheModelSaid) {
  Request request;
  request.grammar = text::grammar_of_regex("[ab]{3}");
  request.log_probs = 2;
  const Told told = written(request);
  ASSERT_EQ(told.tokens.size(), 3u);
  const double all = std::exp(9.0) + std::exp(5.0) + std::exp(4.0) + 29;
  for (const GeneratedToken& t : told.tokens) {
    EXPECT_EQ(t.id, 0);
    EXPECT_NEAR(t.log_prob, 5 - std::log(all), 1e-4);
    ASSERT_EQ(t.top.size(), 2u);
    EXPECT_EQ(t.top[0].id, 25);
    EXPECT_NEAR(t.top[0].log_prob, 9 - std::log(all), 1e-4);
  }
}

// Two requests with the same grammar and other stop ids, one after the other.
TEST(MaskedJob, EveryRequestHasItsOwnStopIds) {
  Engine engine(
      [] { return std::make_unique<FakeRunner>(FakeRunner::Options{}); },
      letters(), {}
  );
  const auto grammar = text::grammar_of_regex("[a-d]+");
  for (const std::int32_t stop : {31, 30, 31}) {
    Request request;
    request.prompt = {3, 9, 4}, request.max_tokens = 60;
    request.grammar = grammar, request.stop_ids = {stop};
    std::vector<std::int32_t> ids;
    std::promise<Finish> end;
    engine.submit(request, [&](const Event& e) {
      if (e.kind == Event::Kind::token) ids.push_back(e.token.id);
      if (e.kind == Event::Kind::end) end.set_value(e.finish);
    });
    EXPECT_EQ(end.get_future().get(), Finish::stop);
    ASSERT_FALSE(ids.empty());
    EXPECT_EQ(ids.back(), stop);
    ids.pop_back();
    for (const std::int32_t id : ids) EXPECT_LT(id, 4);
  }
}

}  // namespace
}  // namespace hearth::infer
