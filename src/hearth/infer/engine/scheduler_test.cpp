#include "hearth/infer/engine/scheduler.h"

#include <gtest/gtest.h>

#include "hearth/infer/engine/fake_runner_test.h"

namespace hearth::infer {
namespace {

using Ids = std::vector<std::int32_t>;

struct Heard {
  Ids ids;
  std::vector<GeneratedToken> prompt, tokens;
  std::optional<Event> end;
};

Ids a_prompt(int tokens, int salt = 0) {
  Ids out;
  for (int i = 0; i < tokens; ++i) out.push_back((i * 7 + salt * 5 + 3) % 32);
  return out;
}

// What must come out however it is scheduled.
Ids expected(Ids ids, int tokens, int adapter = -1) {
  const auto prompt = ids.size();
  for (int t = 0; t < tokens; ++t) {
    ids.push_back(greedy(FakeRunner::logits_after(ids, 32, adapter)));
  }
  return {ids.begin() + static_cast<std::ptrdiff_t>(prompt), ids.end()};
}

struct World {
  FakeRunner runner;
  // Outlives the scheduler, which tells the end of what it still has.
  std::vector<std::unique_ptr<Heard>> heard;
  Scheduler scheduler;

  explicit World(FakeRunner::Options r = {}, EngineOptions e = {})
      : runner(std::move(r)), scheduler(runner, e) {}

  Heard& add(Request request) {
    heard.push_back(std::make_unique<Heard>());
    Heard* h = heard.back().get();
    scheduler.add(
        std::make_unique<Job>(
            heard.size(), std::move(request),
            [h](const Event& e) {
              EXPECT_FALSE(h->end) << "an event after the end";
              if (e.kind == Event::Kind::prompt) h->prompt = e.prompt;
              if (e.kind == Event::Kind::end) h->end = e;
              if (e.kind != Event::Kind::token) return;
              h->ids.push_back(e.token.id);
              h->tokens.push_back(e.token);
            },
            nullptr
        )
    );
    return *h;
  }
  void finish(int most = 10000) {
    while (!scheduler.idle() && most-- > 0) scheduler.step();
    EXPECT_TRUE(scheduler.idle());
  }
};

Request request(Ids prompt, int tokens) {
  Request out;
  out.prompt = std::move(prompt), out.max_tokens = tokens;
  return out;
}

TEST(Scheduler, TextDoesNotDependOnHowItIsFed) {
  for (const int chunk : {1, 5, 256}) {
    for (const int batch : {1, 3, 16}) {
      EngineOptions o;
      o.prefill_chunk = chunk, o.max_batch = batch;
      World world({}, o);
      std::vector<Heard*> heard;
      for (int i = 0; i < 6; ++i) {
        heard.push_back(&world.add(request(a_prompt(3 + 4 * i, i), 9 + i)));
      }
      world.finish();
      for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(heard[i]->ids, expected(a_prompt(3 + 4 * i, i), 9 + i))
            << "request " << i << ", chunk " << chunk << ", batch " << batch;
        ASSERT_TRUE(heard[i]->end);
        EXPECT_EQ(heard[i]->end->finish, Finish::length);
        EXPECT_EQ(heard[i]->end->made_tokens, 9 + i);
        EXPECT_EQ(heard[i]->end->prompt_tokens, 3 + 4 * i);
      }
      EXPECT_LE(world.runner.most_parts, static_cast<std::size_t>(batch));
    }
  }
}

TEST(Scheduler, DecodingGoesOnWhileALongPromptIsFed) {
  EngineOptions o;
  o.prefill_chunk = 8;
  World world({}, o);
  Heard& first = world.add(request(a_prompt(4), 40));
  world.scheduler.step();
  Heard& second = world.add(request(a_prompt(80, 1), 2));
  for (int i = 0; i < 10; ++i) world.scheduler.step();
  EXPECT_EQ(first.ids.size(), 11u);
  EXPECT_EQ(second.ids.size(), 1u);
}

TEST(Scheduler, FewPagesPreemptAndTheTextStaysTheSame) {
  // Each wants 12 pages in the end; there are 20.
  FakeRunner::Options r;
  r.pages = 20;
  World world(r, {});
  std::vector<Heard*> heard;
  for (int i = 0; i < 5; ++i) {
    heard.push_back(&world.add(request(a_prompt(8, i), 40)));
  }
  world.finish();
  EXPECT_GT(world.scheduler.stats().preempted, 0u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(heard[i]->ids, expected(a_prompt(8, i), 40)) << i;
    EXPECT_EQ(heard[i]->end->error, "");
  }
}

TEST(Scheduler, ThePoolEndsATextAsTheContextDoes) {
  FakeRunner::Options r;
  r.pages = 5;  // 20 tokens
  World world(r, {});
  EXPECT_EQ(world.scheduler.limit(), 20);
  Heard& heard = world.add(request(a_prompt(18), 100));
  world.finish();
  EXPECT_EQ(heard.ids, expected(a_prompt(18), 2));
  EXPECT_EQ(heard.end->finish, Finish::length);
  EXPECT_EQ(heard.end->error, "");
}

TEST(Scheduler, PagesAreInUseOrKeptOrFree) {
  World world;  // pages of 4 tokens
  world.add(request(a_prompt(40), 3));
  world.add(request(a_prompt(40), 3));
  for (int i = 0; i < 2; ++i) world.scheduler.step();
  const auto during = world.scheduler.stats();
  // Both have 10 pages of prompt in common but the last.
  EXPECT_GE(during.pages_in_use, 11);
  EXPECT_LT(during.pages_in_use, 20);
  EXPECT_EQ(during.pages_in_use, during.pool.pages - during.pool.free_pages);
  world.finish();
  const auto after = world.scheduler.stats();
  EXPECT_EQ(after.pages_in_use, 0);
  EXPECT_LT(after.pool.free_pages, after.pool.pages);
}

TEST(Scheduler, AHeldRequestLetsOthersPassAndGoesOnWhereItStood) {
  for (const bool cache : {true, false}) {
    EngineOptions o;
    o.max_batch = 1, o.prefix_cache = cache;
    World world({}, o);
    Heard& slow = world.add(request(a_prompt(30), 20));
    for (int i = 0; i < 6; ++i) world.scheduler.step();
    const auto before = slow.ids.size();
    ASSERT_GT(before, 0u);
    world.scheduler.hold(1);
    EXPECT_TRUE(world.scheduler.idle());
    EXPECT_EQ(world.scheduler.stats().held, 1u);
    // The batch has one place, which is free now.
    Heard& quick = world.add(request(a_prompt(8, 1), 12));
    world.finish();
    EXPECT_EQ(quick.ids, expected(a_prompt(8, 1), 12));
    EXPECT_EQ(slow.ids.size(), before);
    const auto fed = world.runner.fed;
    world.scheduler.go_on(1);
    world.finish();
    EXPECT_EQ(slow.ids, expected(a_prompt(30), 20));
    // Nothing of it was computed again.
    EXPECT_EQ(world.runner.fed - fed, 20 - before);
  }
}

TEST(Scheduler, AHeldRequestGivesItsPagesToOthers) {
  FakeRunner::Options r;
  r.pages = 12;  // 48 tokens
  World world(r, {});
  Heard& slow = world.add(request(a_prompt(30), 10));
  for (int i = 0; i < 3; ++i) world.scheduler.step();
  world.scheduler.hold(1);
  Heard& large = world.add(request(a_prompt(40, 1), 5));
  world.finish();
  EXPECT_EQ(large.ids, expected(a_prompt(40, 1), 5));
  world.scheduler.go_on(1);
  world.finish();
  EXPECT_EQ(slow.ids, expected(a_prompt(30), 10));
  EXPECT_EQ(slow.end->error, "");
}

TEST(Scheduler, AHeldRequestCanBeCancelledAndWhoeverWaitsCanBeHeld) {
  EngineOptions o;
  o.max_batch = 1;
  World world({}, o);
  Heard& first = world.add(request(a_prompt(20), 9));
  Heard& second = world.add(request(a_prompt(20, 1), 9));
  world.scheduler.step();
  world.scheduler.hold(1);
  world.scheduler.hold(2);
  world.scheduler.hold(77);
  EXPECT_TRUE(world.scheduler.idle());
  world.scheduler.cancel(1);
  ASSERT_TRUE(first.end);
  EXPECT_EQ(first.end->finish, Finish::cancelled);
  world.scheduler.go_on(1);
  world.scheduler.go_on(2);
  world.finish();
  EXPECT_EQ(second.ids, expected(a_prompt(20, 1), 9));
}

TEST(Scheduler, APromptThatBeginsTheSameSharesPages) {
  World world;
  Heard& first = world.add(request(a_prompt(40), 4));
  world.finish();
  const auto fed = world.runner.fed;
  Ids longer = a_prompt(40);
  longer.insert(longer.end(), first.ids.begin(), first.ids.end());
  longer.push_back(1);
  Heard& second = world.add(request(longer, 4));
  world.finish();
  EXPECT_EQ(second.ids, expected(longer, 4));
  EXPECT_EQ(second.end->cached_tokens, 43);
  EXPECT_EQ(world.runner.fed - fed, 2u + 3u);
  EXPECT_EQ(world.scheduler.stats().cached_tokens, 43u);
  // The longer one holds all of the shorter.
  EXPECT_EQ(world.runner.open_sequences(), 1u);
}

TEST(Scheduler, EqualPromptsAtOnceAreFedOnce) {
  EngineOptions o;
  o.prefill_chunk = 16;
  World world({}, o);
  std::vector<Heard*> heard;
  for (int i = 0; i < 4; ++i) {
    heard.push_back(&world.add(request(a_prompt(64), 3)));
  }
  world.finish();
  for (Heard* h : heard) EXPECT_EQ(h->ids, expected(a_prompt(64), 3));
  EXPECT_LE(world.runner.fed, 64u + 3u + 4u * 3u);
  EXPECT_EQ(world.runner.forks, 3);
}

TEST(Scheduler, AdaptersDoNotShare) {
  World world;
  world.add(request(a_prompt(40), 2));
  world.finish();
  Request other = request(a_prompt(40), 2);
  other.adapter = 0;
  Heard& heard = world.add(other);
  world.finish();
  EXPECT_EQ(heard.ids, expected(a_prompt(40), 2, 0));
  EXPECT_EQ(heard.end->cached_tokens, 0);
}

// Neither what was answered nor what runs: a prompt of somebody else's is as
// new as any.
TEST(Scheduler, ScopesDoNotShare) {
  World world;
  const auto of = [](std::uint64_t scope, int tokens) {
    Request r = request(a_prompt(40), tokens);
    r.scope = {scope, 1};
    return r;
  };
  world.add(of(1, 2));
  world.finish();
  Heard& running = world.add(of(2, 30));
  world.scheduler.step();
  Heard& other = world.add(of(3, 2));
  world.scheduler.step();
  EXPECT_EQ(world.runner.forks, 0);
  world.finish();
  EXPECT_EQ(running.end->cached_tokens, 0);
  EXPECT_EQ(other.end->cached_tokens, 0);
  EXPECT_EQ(world.scheduler.stats().cached_tokens, 0u);
  Heard& own = world.add(of(1, 2));
  world.finish();
  EXPECT_EQ(own.end->cached_tokens, 39);
}

TEST(Scheduler, ScopesTakeTurns) {
  for (const int batch : {1, 3}) {
    EngineOptions options;
    options.max_batch = batch;
    World world({}, options);
    const auto add = [&](std::uint64_t scope) -> Heard& {
      Request asked = request(a_prompt(6, static_cast<int>(scope)), 5);
      asked.scope = {scope, 0};
      return world.add(asked);
    };
    std::vector<Heard*> many;
    for (int i = 0; i < 9; ++i) many.push_back(&add(1));
    Heard& second = add(2);
    Heard& third = add(3);
    while (!third.end || !second.end) world.scheduler.step();
    // Before them ran those that were there first, and no more.
    const auto ended = std::ranges::count_if(many, [](const Heard* h) {
      return h->end.has_value();
    });
    EXPECT_LE(ended, batch == 1 ? 1 : 3);
    world.finish();
    for (const Heard* h : many) EXPECT_EQ(h->end->finish, Finish::length);
  }
}

TEST(Scheduler, WhatIsKeptGivesWayToWhatRuns) {
  FakeRunner::Options r;
  r.pages = 16;
  World world(r, {});
  for (int i = 0; i < 6; ++i) {
    Heard& heard = world.add(request(a_prompt(30, i), 8));
    world.finish();
    EXPECT_EQ(heard.ids, expected(a_prompt(30, i), 8));
    EXPECT_EQ(heard.end->error, "");
  }
  EXPECT_EQ(world.scheduler.stats().preempted, 0u);
  EXPECT_LE(world.runner.open_sequences(), 1u);
}

TEST(Scheduler, WithoutACacheNothingStaysOpen) {
  EngineOptions o;
  o.prefix_cache = false;
  World world({}, o);
  world.add(request(a_prompt(40), 4));
  world.add(request(a_prompt(40), 4));
  world.finish();
  EXPECT_EQ(world.runner.open_sequences(), 0u);
  EXPECT_EQ(world.runner.forks, 0);
}

TEST(Scheduler, CancelEndsOneAlone) {
  World world;
  Heard& first = world.add(request(a_prompt(4, 1), 20));
  Heard& second = world.add(request(a_prompt(4, 2), 20));
  world.scheduler.step();
  world.scheduler.step();
  world.scheduler.cancel(1);
  world.scheduler.cancel(99);
  world.finish();
  EXPECT_EQ(first.end->finish, Finish::cancelled);
  EXPECT_EQ(first.ids.size(), 2u);
  EXPECT_EQ(second.ids, expected(a_prompt(4, 2), 20));
}

TEST(Scheduler, PromptLogProbsAreThoseOfTheRows) {
  EngineOptions o;
  o.prefill_chunk = 5;
  World world({}, o);
  Request r = request(a_prompt(13), 0);
  r.prompt_log_probs = 2;
  Heard& heard = world.add(r);
  world.finish();
  const Ids prompt = a_prompt(13);
  ASSERT_EQ(heard.prompt.size(), 13u);
  EXPECT_TRUE(heard.prompt[0].top.empty());
  for (std::size_t i = 1; i < 13; ++i) {
    const auto row = FakeRunner::logits_after(std::span(prompt).first(i), 32);
    const auto at = static_cast<std::size_t>(prompt[i]);
    EXPECT_NEAR(heard.prompt[i].log_prob, row[at] - log_sum_exp(row), 1e-5);
    ASSERT_EQ(heard.prompt[i].top.size(), 2u);
    EXPECT_EQ(heard.prompt[i].top[0].id, greedy(row));
  }
  EXPECT_TRUE(heard.ids.empty());
  EXPECT_EQ(heard.end->finish, Finish::length);
}

TEST(Scheduler, ScoredPromptsSurvivePreemption) {
  FakeRunner::Options r;
  r.pages = 20;
  EngineOptions o;
  o.prefill_chunk = 4;
  World world(r, o);
  Heard& first = world.add(request(a_prompt(8), 60));
  for (int i = 0; i < 10; ++i) world.scheduler.step();
  Request scored = request(a_prompt(32, 2), 3);
  scored.prompt_log_probs = 0;
  Heard& second = world.add(scored);
  world.finish();
  EXPECT_EQ(first.ids, expected(a_prompt(8), 60));
  EXPECT_EQ(second.prompt.size(), 32u);
  EXPECT_EQ(second.ids, expected(a_prompt(32, 2), 3));
}

TEST(Scheduler, ARefusedStepRunsWithFewer) {
  FakeRunner::Options r;
  r.before_step = [](std::size_t parts) {
    if (parts > 2) throw OutOfMemory("a step of three");
  };
  World world(r, {});
  std::vector<Heard*> heard;
  for (int i = 0; i < 5; ++i) {
    heard.push_back(&world.add(request(a_prompt(6, i), 10)));
  }
  world.finish();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(heard[i]->ids, expected(a_prompt(6, i), 10));
    EXPECT_EQ(heard[i]->end->error, "");
  }
}

TEST(Scheduler, AFailureEndsItsRequestsAndTheNextRuns) {
  FakeRunner::Options r;
  int calls = 0;
  r.before_step = [&](std::size_t) {
    if (++calls == 3) throw Error("the runner broke", "mend it");
  };
  World world(r, {});
  Heard& first = world.add(request(a_prompt(20), 10));
  world.finish();
  EXPECT_EQ(first.end->error, "the runner broke");
  EXPECT_EQ(first.end->hint, "mend it");
  EXPECT_EQ(world.scheduler.stats().failed, 1u);
  EXPECT_EQ(world.runner.open_sequences(), 0u);
  Heard& second = world.add(request(a_prompt(20), 10));
  world.finish();
  EXPECT_EQ(second.ids, expected(a_prompt(20), 10));
  Request bad = request(a_prompt(20), 10);
  bad.adapter = 7;
  EXPECT_NE(world.add(bad).ids.size(), 1u);
  world.finish();
  EXPECT_NE(world.heard.back()->end->error, "");
}

// Its keys and values are as unknown then, and nobody would tell it otherwise.
TEST(Scheduler, AFailureEndsThoseThatWereNotFedToo) {
  FakeRunner::Options r;
  int calls = 0;
  r.before_step = [&](std::size_t parts) {
    EXPECT_EQ(parts, 1u) << "one prompt is read at a time";
    if (++calls == 3) throw Error("the runner broke");
  };
  EngineOptions o;
  o.prefill_chunk = 4;
  World world(r, o);
  Heard& first = world.add(request(a_prompt(20), 1));
  // Of another asker, so that it runs while the first is read.
  Request other = request(a_prompt(20, 1), 1);
  other.asker = 1;
  Heard& second = world.add(other);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(world.scheduler.stats().running, i == 0 ? 0u : 2u);
    world.scheduler.step();
  }
  ASSERT_TRUE(first.end);
  ASSERT_TRUE(second.end);
  EXPECT_EQ(first.end->error, "the runner broke");
  EXPECT_EQ(second.end->error, "the runner broke");
  EXPECT_TRUE(world.scheduler.idle());
  EXPECT_EQ(world.scheduler.stats().failed, 2u);
  EXPECT_EQ(world.runner.open_sequences(), 0u);
}

TEST(Scheduler, RandomLoadsNeverLoseAToken) {
  std::uint32_t seed = 7;
  const auto below = [&](int n) {
    seed = seed * 1664525U + 1013904223U;
    return static_cast<int>((seed >> 8) % static_cast<unsigned>(n));
  };
  for (int round = 0; round < 30; ++round) {
    FakeRunner::Options r;
    r.pages = 12 + below(40), r.page_tokens = 1 + below(6);
    EngineOptions o;
    o.max_batch = 1 + below(6), o.prefill_chunk = 1 + below(20);
    World world(r, o);
    const int limit = world.scheduler.limit();
    std::vector<std::pair<Heard*, Request>> all;
    for (int i = 0; i < 12; ++i) {
      const int n = 1 + below(limit - 1);
      Request q = request(a_prompt(n, below(3)), 1 + below(30));
      if (below(5) == 0) q.prompt_log_probs = 0;
      all.emplace_back(&world.add(q), q);
      for (int s = below(6); s > 0; --s) world.scheduler.step();
    }
    world.finish();
    for (auto& [heard, q] : all) {
      const int room = limit - static_cast<int>(q.prompt.size());
      ASSERT_TRUE(heard->end);
      EXPECT_EQ(heard->end->error, "");
      EXPECT_EQ(heard->ids, expected(q.prompt, std::min(q.max_tokens, room)));
      EXPECT_EQ(heard->prompt.size(), q.prompt_log_probs ? q.prompt.size() : 0);
    }
  }
}

}  // namespace
}  // namespace hearth::infer
