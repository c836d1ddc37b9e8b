#include "hearth/infer/engine/reading_order.h"

#include <gtest/gtest.h>

#include "hearth/infer/engine/fake_runner_test.h"
#include "hearth/infer/engine/scheduler.h"

namespace hearth::infer {
namespace {

using Places = std::vector<std::size_t>;

constexpr Asker kFirst{1, 0, 0}, kSecond{2, 0, 0};

TEST(ReadingOrder, WhoseTurnIsLongestAgoIsFirst) {
  Turns turns;
  const std::vector<UnreadPrompt> prompts = {
      {kFirst, 100}, {kFirst, 200}, {kSecond, 900}
  };
  EXPECT_EQ(reading_order(prompts, turns), (Places{0, 1, 2})) << "as they came";
  turns.take(kFirst);
  EXPECT_EQ(reading_order(prompts, turns), (Places{2, 0, 1}));
  turns.take(kSecond);
  EXPECT_EQ(reading_order(prompts, turns), (Places{0, 1, 2}));
}

TEST(ReadingOrder, TheShortestIsFirstAndInEachFourthTurnWhoCameFirst) {
  Turns turns;
  const std::vector<UnreadPrompt> prompts = {
      {kFirst, 300}, {kFirst, 7}, {kFirst, 20}, {kFirst, 7}
  };
  for (int turn = 0; turn < 8; ++turn) {
    EXPECT_EQ(
        reading_order(prompts, turns),
        turn % 4 == 3 ? (Places{0, 1, 3, 2}) : (Places{1, 3, 2, 0})
    );
    turns.take(kFirst);
  }
}

constexpr int kChunk = 8;

struct World {
  FakeRunner runner;
  std::vector<std::unique_ptr<bool>> ended;
  Scheduler scheduler;

  World() : runner(roomy()), scheduler(runner, chunked()) {}

  static FakeRunner::Options roomy() {
    FakeRunner::Options out;
    out.context = 1024, out.pages = 1024;
    return out;
  }
  static EngineOptions chunked() {
    EngineOptions out;
    out.prefill_chunk = kChunk;
    return out;
  }

  const bool& add(std::uint64_t scope, int tokens, Request request = {}) {
    for (int i = 0; i < tokens; ++i) {
      const int salt = static_cast<int>(ended.size());
      request.prompt.push_back((i * 7 + salt * 5 + 3) % 32);
    }
    request.scope = {scope, 0};
    request.max_tokens = std::min(request.max_tokens, 1);
    ended.push_back(std::make_unique<bool>(false));
    scheduler.add(
        std::make_unique<Job>(
            ended.size(), std::move(request),
            [to = ended.back().get()](const Event& e) {
              if (e.kind == Event::Kind::end) *to = true;
            },
            nullptr
        )
    );
    return *ended.back();
  }
  int steps_until(const bool& done) {
    int steps = 0;
    for (; !done && steps < 10'000; ++steps) scheduler.step();
    return steps;
  }
};

// The long ones of one key, the short one of another: read, scored or made a
// vector.
TEST(ReadingTurns, AShortPromptWaitsForAChunkOfEachOtherScope) {
  Request scored, vector;
  scored.max_tokens = 0, scored.prompt_log_probs = 0;
  vector.max_tokens = 0, vector.pooling = Pooling::mean;
  for (const Request& kind : {Request{}, scored, vector}) {
    World world;
    std::vector<const bool*> longs;
    for (int i = 0; i < 8; ++i) longs.push_back(&world.add(1, 400, kind));
    for (int i = 0; i < 3; ++i) world.scheduler.step();
    const bool& other = world.add(2, 400);
    for (int i = 0; i < 3; ++i) world.scheduler.step();
    EXPECT_LE(world.steps_until(world.add(3, 2)), 3);
    EXPECT_LE(world.steps_until(world.add(4, 2)), 3);
    EXPECT_FALSE(other);
    // The other's one long prompt has every second chunk.
    EXPECT_LE(world.steps_until(other), 2 * 400 / kChunk + 8);
    for (const bool* one : longs) world.steps_until(*one);
    EXPECT_TRUE(world.scheduler.idle());
  }
}

TEST(ReadingTurns, OfOneScopeTheShortGoAheadAndTheLongGetOn) {
  World world;
  const bool& longest = world.add(1, 400);
  const bool& next = world.add(1, 400);
  for (int i = 0; i < 3; ++i) world.scheduler.step();
  EXPECT_LE(world.steps_until(world.add(1, 2)), 2);
  // It has a quarter of the chunks at the least, whatever comes.
  int steps = 0;
  for (; !longest && steps < 1000; ++steps) {
    world.add(1, kChunk);
    world.scheduler.step();
  }
  EXPECT_LE(steps, 4 * 400 / kChunk + 8);
  EXPECT_FALSE(next);
  world.steps_until(next);
}

// Who would not be read takes no place in the batch from those who would.
TEST(ReadingTurns, LongPromptsDoNotFillTheBatch) {
  World world;
  world.scheduler.set_max_batch(2);
  for (int i = 0; i < 5; ++i) world.add(1, 400);
  world.scheduler.step();
  EXPECT_EQ(world.scheduler.stats().running, 1U);
  EXPECT_LE(world.steps_until(world.add(2, 2)), 2);
}

// Two that share a beginning: while one waits for it, other scopes go on.
TEST(ReadingTurns, WhoWaitsForABeginningKeepsOnlyItsScope) {
  World world;
  Request same;
  same.prompt.assign(500, 5);
  world.add(1, 1, same);
  world.scheduler.step();
  world.add(1, 0, [&] { return same.prompt.resize(400), same; }());
  world.add(2, 500);
  world.scheduler.step();
  EXPECT_LE(world.steps_until(world.add(2, 2)), 4);
}

TEST(ReadingTurns, TellHowLongSomebodyHasHadNone) {
  World world;
  EXPECT_FALSE(world.scheduler.stats().waits_since);
  const auto before = Clock::now();
  const bool& first = world.add(1, 400);
  const bool& second = world.add(1, 400);
  const auto after = Clock::now();
  world.scheduler.step();
  ASSERT_TRUE(world.scheduler.stats().waits_since);
  EXPECT_GE(*world.scheduler.stats().waits_since, before);
  EXPECT_LE(*world.scheduler.stats().waits_since, after) << "the second waits";
  world.steps_until(first);
  world.scheduler.step();
  EXPECT_GT(*world.scheduler.stats().waits_since, after);
  world.steps_until(second);
  EXPECT_FALSE(world.scheduler.stats().waits_since);
}

}  // namespace
}  // namespace hearth::infer
