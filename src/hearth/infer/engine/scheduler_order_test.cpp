// Whom the scheduler serves first and whose pages it gives away, over the
// runner that is arithmetic.
#include <gtest/gtest.h>

#include "hearth/infer/engine/fake_runner_test.h"
#include "hearth/infer/engine/scheduler.h"

namespace hearth::infer {
namespace {

using Ids = std::vector<std::int32_t>;

Ids a_prompt(int tokens, int salt) {
  Ids out;
  for (int i = 0; i < tokens; ++i) {
    out.push_back((i * (salt + 3) + salt * 11) % 32);
  }
  return out;
}

Ids expected(Ids ids, int tokens, int adapter = -1) {
  const auto prompt = static_cast<std::ptrdiff_t>(ids.size());
  for (int t = 0; t < tokens; ++t) {
    ids.push_back(greedy(FakeRunner::logits_after(ids, 32, adapter)));
  }
  return {ids.begin() + prompt, ids.end()};
}

struct World {
  struct Heard {
    Ids ids;
    std::vector<int> moments;  // of its tokens, in the order of all
    std::optional<Event> end;
  };
  FakeRunner runner;
  Scheduler scheduler;
  std::vector<std::unique_ptr<Heard>> heard;
  int moment = 0;

  explicit World(FakeRunner::Options r = {}, EngineOptions e = {})
      : runner(std::move(r)), scheduler(runner, e) {}

  Heard& add(const Ids& prompt, int tokens, int adapter = -1) {
    Request request;
    request.prompt = prompt, request.max_tokens = tokens;
    request.adapter = adapter;
    heard.push_back(std::make_unique<Heard>());
    Heard* h = heard.back().get();
    scheduler.add(
        std::make_unique<Job>(
            heard.size(), std::move(request),
            [this, h](const Event& e) {
              if (e.kind == Event::Kind::end) h->end = e;
              if (e.kind != Event::Kind::token) return;
              h->ids.push_back(e.token.id);
              h->moments.push_back(++moment);
            },
            nullptr
        )
    );
    return *h;
  }
  void finish() {
    for (int most = 10000; !scheduler.idle() && most > 0; --most) {
      scheduler.step();
    }
    ASSERT_TRUE(scheduler.idle());
  }
  // How much of the prompt was there already.
  int cached(const Ids& prompt) {
    const Heard& h = add(prompt, 4);
    finish();
    EXPECT_EQ(h.ids, expected(prompt, 4));
    return h.end ? h.end->cached_tokens : -1;
  }
};

// A conversation takes 11 pages of 4 tokens; two fit beside what runs.
FakeRunner::Options room_for_two() {
  FakeRunner::Options r;
  r.pages = 30;
  return r;
}

TEST(PrefixCacheOrder, WhatWasUsedLongestAgoLeavesFirst) {
  World world(room_for_two());
  const Ids a = a_prompt(40, 1), b = a_prompt(40, 2), c = a_prompt(40, 5);
  EXPECT_EQ(world.cached(a), 0);
  EXPECT_EQ(world.cached(b), 0);
  EXPECT_GT(world.cached(a), 30) << "used again: b is older now";
  EXPECT_EQ(world.cached(c), 0);
  EXPECT_GT(world.cached(a), 30);
  EXPECT_EQ(world.cached(b), 0);
}

// A text that only begins like it is a use too.
TEST(PrefixCacheOrder, WhatABeginningWasTakenFromIsUsed) {
  World world(room_for_two());
  const Ids a = a_prompt(40, 1), b = a_prompt(40, 2), c = a_prompt(40, 5);
  world.cached(a);
  world.cached(b);
  Ids like_a{a.begin(), a.begin() + 36};
  like_a.push_back(a[36] == 1 ? 2 : 1);
  EXPECT_EQ(world.cached(like_a), 36);
  EXPECT_EQ(world.cached(c), 0) << "takes the place of b";
  EXPECT_GT(world.cached(a), 36);
}

TEST(PrefixCacheOrder, TheLongestBeginningIsTaken) {
  World world;
  const Ids whole = a_prompt(40, 1);
  Ids half{whole.begin(), whole.begin() + 20}, other = a_prompt(20, 7);
  half.insert(half.end(), other.begin(), other.end());
  world.cached(whole);
  world.cached(half);
  Ids asked{whole.begin(), whole.begin() + 36};
  asked.push_back(1), asked.push_back(2);
  EXPECT_GE(world.cached(asked), 36);
}

TEST(PrefixCacheOrder, PagesOfWhatLeftAreFree) {
  World world(room_for_two());
  for (int salt = 0; salt < 9; ++salt) world.cached(a_prompt(40, salt));
  EXPECT_LE(world.runner.open_sequences(), 3u);
  EXPECT_EQ(world.scheduler.stats().preempted, 0u);
}

// Two at once over one text: each has the weights it asked for.
TEST(AdapterPages, ARunningSequenceOfAnotherAdapterIsNotBegunFrom) {
  for (const bool first : {true, false}) {
    EngineOptions o;
    o.prefill_chunk = 16;
    World world({}, o);
    const Ids prompt = a_prompt(60, 3);
    const auto& a = world.add(prompt, 12, first ? 0 : -1);
    for (int i = 0; i < 4; ++i) world.scheduler.step();
    const auto& b = world.add(prompt, 12, first ? -1 : 0);
    world.finish();
    EXPECT_EQ(a.ids, expected(prompt, 12, first ? 0 : -1));
    EXPECT_EQ(b.ids, expected(prompt, 12, first ? -1 : 0));
  }
}

TEST(BatchLimit, IsNotPassedAndMayChange) {
  EngineOptions o;
  o.max_batch = 2;
  World world({}, o);
  for (int i = 0; i < 6; ++i) world.add(a_prompt(8, i), 10);
  for (int i = 0; i < 5; ++i) world.scheduler.step();
  EXPECT_EQ(world.scheduler.stats().running, 2u);
  EXPECT_EQ(world.runner.most_parts, 2u);
  world.scheduler.set_max_batch(4);
  for (int i = 0; i < 3; ++i) world.scheduler.step();
  EXPECT_EQ(world.scheduler.stats().running, 4u);
  world.finish();
  EXPECT_EQ(world.runner.most_parts, 4u);
}

// Pages that a prompt under way still needs are not given to the next.
TEST(Commitments, AreKeptForWhatRuns) {
  FakeRunner::Options r;
  r.pages = 20;
  EngineOptions o;
  o.prefill_chunk = 8, o.prefix_cache = false;
  World world(r, o);
  const auto& a = world.add(a_prompt(60, 1), 4);
  world.scheduler.step();
  const auto& b = world.add(a_prompt(40, 2), 4);
  world.finish();
  EXPECT_EQ(a.ids, expected(a_prompt(60, 1), 4));
  EXPECT_EQ(b.ids, expected(a_prompt(40, 2), 4));
  EXPECT_EQ(world.scheduler.stats().preempted, 0u);
}

TEST(Cancelled, WhoWaitedIsGoneAtOnce) {
  EngineOptions o;
  o.max_batch = 1;
  World world({}, o);
  world.add(a_prompt(8, 1), 10);
  const auto& b = world.add(a_prompt(8, 2), 10);
  world.scheduler.step();
  ASSERT_EQ(world.scheduler.stats().waiting, 1u);
  world.scheduler.cancel(2);
  EXPECT_EQ(world.scheduler.stats().waiting, 0u);
  world.finish();
  EXPECT_TRUE(b.ids.empty());
  ASSERT_TRUE(b.end);
  EXPECT_EQ(b.end->finish, Finish::cancelled);
}

// Who had begun and had to give way comes before who has waited only.
TEST(PreemptedOrder, WhoGaveWayIsTheNext) {
  FakeRunner::Options r;
  r.pages = 24;
  EngineOptions o;
  o.max_batch = 2, o.prefix_cache = false;
  World world(r, o);
  // Together they want 2 * 16 pages in the end.
  const auto& a = world.add(a_prompt(24, 1), 40);
  const auto& b = world.add(a_prompt(24, 2), 40);
  const auto& c = world.add(a_prompt(4, 4), 6);
  world.finish();
  ASSERT_GT(world.scheduler.stats().preempted, 0u);
  EXPECT_EQ(a.ids, expected(a_prompt(24, 1), 40));
  EXPECT_EQ(b.ids, expected(a_prompt(24, 2), 40));
  ASSERT_FALSE(c.moments.empty());
  // b's first token after the longest pause in its text.
  std::size_t back = 1;
  for (std::size_t i = 1; i < b.moments.size(); ++i) {
    const auto gap = [&](std::size_t at) {
      return b.moments[at] - b.moments[at - 1];
    };
    if (gap(i) > gap(back)) back = i;
  }
  EXPECT_GT(c.moments.front(), b.moments[back]);
}

}  // namespace
}  // namespace hearth::infer
