// A job whose client does not keep up, over an engine whose model is
// arithmetic and a reply that nobody pulls but the test.
#include "hearth/serve/generation_job.h"

#include <future>

#include <gtest/gtest.h>

#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

using std::chrono::milliseconds;

struct JobBench {
  explicit JobBench(std::size_t max_waiting)
      : engine(
            [] {
              return std::make_unique<infer::FakeRunner>(
                  infer::FakeRunner::Options{}
              );
            },
            letters_tokenizer(),
            {}
        ),
        reply(
            std::make_shared<HttpReply>(
                HttpReply::Terms{.max_waiting = max_waiting, .wake = [] {}}
            )
        ) {}

  void start(int choices, int tokens) {
    JobPlan plan;
    plan.head = {"cmpl-1", "m", 1, false};
    plan.stream = plan.log_probs = true;
    plan.choices_per_prompt = choices;
    for (int i = 0; i < choices; ++i) {
      infer::Request request;
      request.prompt = {1, 2, 3, 4 + i};
      request.max_tokens = tokens;
      request.log_probs = 20;
      plan.requests.push_back(request);
    }
    std::make_shared<GenerationJob>(
        JobHost{
            .engine = &engine,
            .tokenizer = letters_tokenizer(),
            .metrics = metrics,
            .route = "/v1/completions"
        },
        std::move(plan), reply
    )
        ->start();
  }

  bool eventually(const std::function<bool()>& what) const {
    for (int i = 0; i < 5000 && !what(); ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return what();
  }

  infer::Engine engine;
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  std::shared_ptr<HttpReply> reply;
};

TEST(GenerationJob, AClientThatDoesNotReadPausesItsOwnAnswer) {
  constexpr std::size_t kWaiting = 16 << 10;
  JobBench bench(kWaiting);
  bench.start(3, 120);
  EXPECT_TRUE(bench.eventually([&] { return bench.engine.stats().held == 3; }));
  const auto before = bench.engine.stats().made_tokens;
  EXPECT_LT(before, 100U);
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(bench.engine.stats().made_tokens, before);

  std::string got;
  std::size_t most = 0;
  for (int i = 0; i < 100'000; ++i) {
    auto pull = bench.reply->pull();
    most = std::max(most, pull.bytes.size());
    got += pull.bytes;
    if (pull.ended) break;
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(got.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
  const auto events = events_of(got);
  int tokens = 0;
  for (const auto& event : events) {
    if (event == "[DONE]") continue;
    const Json probs = Json::parse(event)["choices"][0]["logprobs"];
    if (!probs.is_null()) tokens += static_cast<int>(probs["tokens"].size());
  }
  EXPECT_EQ(tokens, 360);
  // One event a choice may come after it was full.
  EXPECT_LT(most, kWaiting + 3 * 4096);
  EXPECT_EQ(bench.metrics->done, 1U);
}

TEST(GenerationJob, AClientThatLeavesWhilePausedIsForgotten) {
  JobBench bench(4 << 10);
  bench.start(2, 120);
  EXPECT_TRUE(bench.eventually([&] { return bench.engine.stats().held == 2; }));
  bench.reply->client_left();
  EXPECT_TRUE(bench.eventually([&] {
    const auto stats = bench.engine.stats();
    return stats.held + stats.running + stats.waiting == 0;
  }));
  EXPECT_EQ(bench.metrics->cancelled, 1U);
}

TEST(GenerationJob, AGrammarMayBeginAfterAMark) {
  JobBench bench(1 << 20);
  int marked = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    infer::Request request;
    request.prompt = {5, 6, static_cast<std::int32_t>(seed % 26)};
    request.max_tokens = 60;
    request.sampling.temperature = 1;
    request.sampling.seed = seed;
    request.logit_bias = {{0, 2.0f}, {1, 2.0f}};
    request.grammar = text::grammar_of_regex("(cd|ef)+[.]");
    request.grammar_after = "ab";
    std::string text;
    std::promise<infer::Event> end;
    bench.engine.submit(request, [&](const infer::Event& e) {
      text += e.token.text;
      if (e.kind == infer::Event::Kind::end) end.set_value(e);
    });
    const infer::Event ended = end.get_future().get();
    EXPECT_EQ(ended.error, "");
    const auto at = text.find("ab");
    if (at == text.npos) continue;
    ++marked;
    // What is before it is free, what is after it is held to the pattern.
    std::string rest = text.substr(at + 2);
    if (ended.finish == infer::Finish::stop) {
      EXPECT_TRUE(rest.ends_with('.')) << text;
      rest.pop_back();
    }
    for (std::size_t i = 0; i + 1 < rest.size(); i += 2) {
      const auto pair = rest.substr(i, 2);
      EXPECT_TRUE(pair == "cd" || pair == "ef") << text;
    }
  }
  EXPECT_GT(marked, 5);
}

}  // namespace
}  // namespace hearth::serve
