#include "hearth/infer/engine/speculator.h"

#include <cmath>

#include <gtest/gtest.h>

#include "hearth/base/log.h"
#include "hearth/infer/engine/fake_runner_test.h"
#include "hearth/infer/engine/scheduler.h"

namespace hearth::infer {
namespace {

using Ids = std::vector<std::int32_t>;

FakeRunner::Options small_runner(float sharpness = 1) {
  FakeRunner::Options o;
  o.vocabulary = 6, o.sharpness = sharpness;
  return o;
}

struct Outcome {
  std::vector<Ids> texts;
  EngineStats stats;
  int steps = 0;
};

Outcome run(
    const std::vector<Request>& requests,
    std::unique_ptr<Speculator> speculator,
    FakeRunner::Options runner_options = small_runner()
) {
  FakeRunner runner(std::move(runner_options));
  EngineOptions options;
  options.prefix_cache = false, options.draft_batch = 16;
  Outcome out;
  out.texts.resize(requests.size());
  Scheduler scheduler(runner, options, std::move(speculator));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    scheduler.add(
        std::make_unique<Job>(
            i + 1, requests[i],
            [&out, i](const Event& e) {
              if (e.kind == Event::Kind::token) {
                out.texts[i].push_back(e.token.id);
              } else {
                EXPECT_EQ(e.error, "");
              }
            },
            nullptr
        )
    );
  }
  for (int s = 0; s < 2000 && !scheduler.idle(); ++s) scheduler.step();
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(runner.open_sequences(), 0u);
  out.stats = scheduler.stats();
  out.steps = runner.steps;
  return out;
}

std::unique_ptr<Speculator> draft(float sharpness) {
  return std::make_unique<DraftSpeculator>(
      std::make_unique<FakeRunner>(small_runner(sharpness))
  );
}

std::vector<Request> some(double temperature, int count, int tokens = 40) {
  std::vector<Request> out;
  for (int i = 0; i < count; ++i) {
    Request r;
    r.prompt = {1, 2, i % 6, 1, 2};
    r.max_tokens = tokens;
    r.sampling.temperature = temperature;
    r.sampling.seed = static_cast<std::uint64_t>(i);
    out.push_back(r);
  }
  return out;
}

TEST(Speculator, TheTextIsTheSameWithEveryKindOfGuess) {
  for (const double temperature : {0.0, 0.7, 1.5}) {
    const auto requests = some(temperature, 3);
    const auto plain = run(requests, nullptr);
    EXPECT_EQ(plain.stats.drafted, 0u);
    for (const float sharpness : {1.0f, 0.6f, -1.0f}) {
      EXPECT_EQ(run(requests, draft(sharpness)).texts, plain.texts);
    }
    for (const int n : {1, 3}) {
      const auto got = run(requests, std::make_unique<NgramSpeculator>(n));
      EXPECT_EQ(got.texts, plain.texts);
    }
  }
}

TEST(Speculator, AGoodDraftSavesStepsAndABadOneLosesNone) {
  const auto requests = some(0.5, 1);
  const auto plain = run(requests, nullptr);
  EXPECT_EQ(plain.steps, 40);
  const auto same = run(requests, draft(1));
  EXPECT_EQ(same.stats.accepted, same.stats.drafted);
  EXPECT_LE(same.steps, 1 + (40 + 4) / 5);
  const auto near = run(requests, draft(0.8f));
  EXPECT_GT(near.stats.accepted, near.stats.drafted / 2);
  EXPECT_LT(near.steps, 30);
  EXPECT_LE(run(requests, draft(-1)).steps, 40);
}

// 8,000 texts of two tokens after the first against the exact probabilities:
// chi-square over the 36 pairs, whose 99.99 % point with 35 degrees of freedom
// is 76.
TEST(Speculator, DrawsAreDistributedAsWithoutGuesses) {
  constexpr int kTexts = 8000;
  std::vector<Request> requests;
  for (int i = 0; i < kTexts; ++i) {
    Request r;
    r.prompt = {1, 2, 3}, r.max_tokens = 3;
    r.sampling.temperature = 1;
    r.sampling.seed = static_cast<std::uint64_t>(i) * 7919;
    // The first token is forced, since nothing is guessed before it.
    requests.push_back(r);
  }
  const auto got = run(requests, draft(0.7f));
  EXPECT_GT(got.stats.accepted, 1000u);
  EXPECT_LT(got.stats.accepted, got.stats.drafted);
  const auto share = [](const Ids& text) {
    const auto row = FakeRunner::logits_after(text, 6);
    std::vector<double> p;
    for (const float v : row) p.push_back(std::exp(v - log_sum_exp(row)));
    return p;
  };
  std::vector<double> want(36, 0), seen(36, 0);
  const auto first = share({1, 2, 3});
  for (int a = 0; a < 6; ++a) {
    const auto second = share({1, 2, 3, a});
    for (int b = 0; b < 6; ++b) {
      const auto third = share({1, 2, 3, a, b});
      for (std::size_t c = 0; c < 6; ++c) {
        want[static_cast<std::size_t>(b) * 6 + c] +=
            kTexts * first[static_cast<std::size_t>(a)] *
            second[static_cast<std::size_t>(b)] * third[c];
      }
    }
  }
  for (const Ids& t : got.texts) {
    ++seen[static_cast<std::size_t>(t[1]) * 6 + static_cast<std::size_t>(t[2])];
  }
  double chi = 0;
  for (std::size_t i = 0; i < 36; ++i) {
    ASSERT_GT(want[i], 5);
    chi += (seen[i] - want[i]) * (seen[i] - want[i]) / want[i];
  }
  EXPECT_LT(chi, 76);
}

TEST(Speculator, NgramsFindWhatFollowedTheLastTime) {
  NgramSpeculator speculator(3);
  const auto guess = [&](const Ids& text, int most) {
    Speculator::Ask ask;
    ask.tokens = text, ask.most = most;
    speculator.guess({&ask, 1});
    return ask.guesses;
  };
  EXPECT_EQ(guess({5, 6, 7, 8, 9, 5, 6, 7}, 2), (Ids{8, 9}));
  EXPECT_EQ(guess({5, 6, 7, 8, 9, 5, 6, 7}, 9), (Ids{8, 9, 5, 6, 7}));
  // The longest run counts, then the latest place.
  EXPECT_EQ(guess({1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}, 1), (Ids{4}));
  EXPECT_EQ(guess({2, 3, 4, 2, 3, 5, 2, 3}, 1), (Ids{5}));
  // One token in common is chance.
  EXPECT_EQ(guess({1, 2, 3, 4, 1}, 3), Ids{});
  EXPECT_EQ(guess({1}, 3), Ids{});
  EXPECT_THROW(NgramSpeculator(0), UsageError);
}

TEST(Speculator, FewPagesOrALongTextGoWithoutGuesses) {
  const auto requests = some(0, 3);
  const auto plain = run(requests, nullptr);
  auto tight = small_runner();
  tight.pages = 14;
  EXPECT_EQ(run(requests, draft(1), tight).texts, plain.texts);
  auto short_context = small_runner();
  short_context.context = 20, short_context.pages = 8;
  const auto got =
      run(requests, std::make_unique<DraftSpeculator>(
                        std::make_unique<FakeRunner>(short_context)
                    ));
  EXPECT_EQ(got.texts, plain.texts);
  EXPECT_GT(got.stats.drafted, 0u);
}

TEST(Speculator, TokensThatTheDraftHasNoneOfGoWithoutGuesses) {
  auto smaller = small_runner();
  smaller.vocabulary = 3;
  auto requests = some(0, 2);
  for (Request& r : requests) r.logit_bias = {{3, -99}, {4, -99}, {5, -99}};
  requests[1].prompt = {1, 5, 1};
  const auto plain = run(requests, nullptr);
  const auto got = run(
      requests,
      std::make_unique<DraftSpeculator>(std::make_unique<FakeRunner>(smaller))
  );
  EXPECT_EQ(got.texts, plain.texts);
  EXPECT_GT(got.stats.drafted, 0u);
}

TEST(Speculator, OneThatFailsIsDoneWithoutAndTold) {
  std::string said;
  const auto before = set_log_sink([&](const LogRecord& r) { said = r.text; });
  auto broken = small_runner();
  int calls = 0;
  broken.before_step = [&](std::size_t) {
    if (++calls == 3) throw Error("the draft broke");
  };
  const auto requests = some(0, 2);
  const auto got = run(
      requests,
      std::make_unique<DraftSpeculator>(std::make_unique<FakeRunner>(broken))
  );
  set_log_sink(before);
  EXPECT_EQ(got.texts, run(requests, nullptr).texts);
  EXPECT_NE(said.find("the draft broke"), std::string::npos) << said;
}

}  // namespace
}  // namespace hearth::infer
