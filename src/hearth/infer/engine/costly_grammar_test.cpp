// Grammars whose next token is much to work out, beside requests that have
// none: nobody waits for them, they get on all the same, and the text is the
// same wherever the work is done.
#include <future>

#include <gtest/gtest.h>

#include "hearth/infer/engine/fake_runner_test.h"
#include "hearth/infer/engine/letters_test.h"
#include "hearth/infer/engine/scheduler.h"

namespace hearth::infer {
namespace {

using Ids = std::vector<std::int32_t>;

// More places than are looked at between two steps, with each letter anew.
std::shared_ptr<const text::Grammar> costly(int branches) {
  std::string source = "root ::= ";
  for (int i = 0; i < branches; ++i) {
    const char last = static_cast<char>('b' + i % 20);
    source += (i > 0 ? " | .{" : ".{") + std::to_string(i + 40) + "} [a-";
    source += std::string(1, last) + "]";
  }
  return text::grammar_of_gbnf(source);
}

struct Heard {
  Ids ids;
  std::string text;
  std::optional<Event> end;

  void hear(const Event& e) {
    if (e.kind == Event::Kind::end) end = e;
    if (e.kind != Event::Kind::token) return;
    ids.push_back(e.token.id);
    text += e.token.text;
  }
};

Request request(int salt, int tokens) {
  Request r;
  r.prompt = {salt % 26, 5, 9, 2}, r.max_tokens = tokens;
  return r;
}

Request held(int salt, int tokens, int branches = 600) {
  Request r = request(salt, tokens);
  r.grammar = costly(branches), r.stop_ids = {31};
  return r;
}

// A pool whose threads a test may keep busy, and a scheduler that uses it.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  text::GrammarPool pool{[this] {
    {
      const std::lock_guard lock(mutex);
    }
    changed.notify_all();
  }};
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  std::vector<std::unique_ptr<Heard>> heard;
  FakeRunner runner;
  Scheduler scheduler;
  std::shared_ptr<const text::Tokenizer> tokenizer = letters();
  std::shared_ptr<const text::GrammarVocabulary> words = letter_words();

  explicit World(
      bool apart = true,
      const EngineOptions& options = {},
      std::unique_ptr<Speculator> speculator = nullptr
  )
      : runner({.context = 2048, .pages = 512}),
        scheduler(
            runner,
            options,
            std::move(speculator),
            apart ? &pool : nullptr
        ) {}

  void keep_pool_busy() {
    for (const char* owner : {"one", "another"}) {
      pool.submit(owner, [wait = opened](Effort&) { wait.wait(); });
    }
  }
  Heard& add(Request request) {
    heard.push_back(std::make_unique<Heard>());
    Heard* const h = heard.back().get();
    scheduler.add(
        std::make_unique<Job>(
            heard.size(), std::move(request),
            [h](const Event& e) { h->hear(e); }, tokenizer, words
        )
    );
    return *h;
  }
  // As the engine does; says how many steps there were.
  int finish() {
    int steps = 0;
    for (; !scheduler.idle(); ++steps) {
      if (steps == 100'000) throw std::runtime_error("it does not end");
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !scheduler.rests(); });
      }
      scheduler.step();
    }
    return steps;
  }
};

// What comes out where all is done within the steps.
Heard plain(Request request) {
  World world(false);
  Heard& h = world.add(std::move(request));
  world.finish();
  return h;
}

TEST(CostlyGrammar, NobodyElseWaitsForIt) {
  World world;
  world.keep_pool_busy();
  Heard& slow = world.add(held(1, 10));
  Heard& quick = world.add(request(2, 20));
  // A prompt and nineteen more tokens, a step for each.
  for (int i = 0; i < 20; ++i) {
    ASSERT_FALSE(world.scheduler.rests());
    world.scheduler.step();
  }
  EXPECT_EQ(quick.ids, plain(request(2, 20)).ids);
  ASSERT_TRUE(quick.end);
  EXPECT_TRUE(slow.ids.empty());
  // Nobody is left who could go on.
  world.scheduler.step();
  EXPECT_TRUE(world.scheduler.rests());
  EXPECT_FALSE(world.scheduler.idle());
  EXPECT_EQ(world.pool.state().waiting, 1U);
  world.open.set_value();
  world.finish();
  EXPECT_EQ(slow.text, plain(held(1, 10)).text);
  EXPECT_EQ(slow.ids.size(), 10U);
}

// Also where it is held only from a mark on, which is in the middle of a text.
TEST(CostlyGrammar, NobodyElseWaitsForWhatBeginsLater) {
  Request later = held(1, 60);
  const std::string free = plain(request(1, 60)).text;
  later.grammar_after = free.substr(0, 3);
  const Heard expected = plain(later);
  World world;
  world.keep_pool_busy();
  Heard& slow = world.add(later);
  Heard& quick = world.add(request(2, 60));
  while (!quick.end) world.scheduler.step();
  EXPECT_EQ(quick.ids, plain(request(2, 60)).ids);
  EXPECT_LE(slow.ids.size(), 3U);
  world.open.set_value();
  world.finish();
  EXPECT_EQ(slow.ids, expected.ids);
}

// Stop strings are looked for in what the grammar says may be all of the text,
// which is as much work. The token that was chosen is told of once it is done.
TEST(CostlyGrammar, NobodyElseWaitsForStopStrings) {
  Request stops = held(1, 12);
  stops.stop = {"xyz", "q"};
  const Heard expected = plain(stops);
  World world;
  Heard& slow = world.add(stops);
  Heard& quick = world.add(request(2, 20));
  world.finish();
  EXPECT_EQ(slow.ids, expected.ids);
  EXPECT_EQ(slow.text, expected.text);
  EXPECT_EQ(quick.ids, plain(request(2, 20)).ids);
  EXPECT_EQ(slow.end->made_tokens, 12);
}

TEST(CostlyGrammar, ItsTextIsTheSameWhereverTheWorkIsDone) {
  for (const bool guesses : {false, true}) {
    EngineOptions options;
    options.draft_batch = 8;
    World world(
        true, options, guesses ? std::make_unique<NgramSpeculator>(2) : nullptr
    );
    std::vector<Heard*> got;
    for (int i = 0; i < 6; ++i) {
      Request r = i % 2 == 0 ? held(i, 30) : request(i, 30);
      r.log_probs = 1;
      got.push_back(&world.add(r));
    }
    world.finish();
    for (int i = 0; i < 6; ++i) {
      const Heard expected = plain(i % 2 == 0 ? held(i, 30) : request(i, 30));
      const Heard& h = *got[static_cast<std::size_t>(i)];
      EXPECT_EQ(h.ids, expected.ids) << i;
      EXPECT_EQ(h.text, expected.text) << i;
      EXPECT_EQ(h.end->finish, expected.end->finish) << i;
    }
  }
}

// What is little work never leaves the engine's thread.
TEST(CostlyGrammar, WhatIsCheapStaysWithinTheSteps) {
  World world;
  Request r = request(1, 40);
  r.grammar = text::grammar_of_regex("([a-f]{3}[.,])*!"), r.stop_ids = {31};
  Heard& h = world.add(r);
  // A step for each token, and none that does nothing.
  const int steps = world.finish();
  EXPECT_EQ(steps, static_cast<int>(h.ids.size()));
  EXPECT_EQ(world.pool.state().threads, 0U);
}

TEST(CostlyGrammar, TooAmbiguousEndsItsOwnRequest) {
  World world;
  Heard& slow = world.add(held(1, 200, 3000));
  Heard& quick = world.add(request(2, 20));
  world.finish();
  EXPECT_TRUE(slow.end->request_at_fault);
  EXPECT_NE(slow.end->error.find("too ambiguous"), std::string::npos);
  EXPECT_EQ(quick.ids, plain(request(2, 20)).ids);
}

TEST(CostlyGrammar, ALeftRequestGivesItsPlaceBackAtOnce) {
  World world;
  world.keep_pool_busy();
  Heard& slow = world.add(held(1, 10));
  world.scheduler.step();
  EXPECT_TRUE(world.scheduler.rests());
  world.scheduler.cancel(1);
  EXPECT_EQ(slow.end->finish, Finish::cancelled);
  EXPECT_EQ(slow.end->made_tokens, 0);
  EXPECT_TRUE(world.scheduler.idle());
  world.open.set_value();
}

// It is held while its work is under way, others get on, and it goes on later.
TEST(CostlyGrammar, MayBeHeldMeanwhile) {
  World world;
  world.keep_pool_busy();
  Heard& slow = world.add(held(1, 10));
  world.scheduler.step();
  world.scheduler.hold(1);
  Heard& quick = world.add(request(2, 5));
  world.finish();
  EXPECT_TRUE(quick.end);
  world.open.set_value();
  world.scheduler.go_on(1);
  world.finish();
  EXPECT_EQ(slow.ids, plain(held(1, 10)).ids);
}

// Two prompts that begin alike: the second does not wait for the first, whose
// end is not read yet.
TEST(CostlyGrammar, ACommonBeginningIsNotWaitedFor) {
  World world;
  world.keep_pool_busy();
  Request first = held(1, 5), second = request(1, 5);
  first.prompt = second.prompt = Ids(40, 7);
  world.add(first);
  world.scheduler.step();
  Heard& quick = world.add(second);
  for (int i = 0; i < 5; ++i) world.scheduler.step();
  EXPECT_TRUE(quick.end);
  world.open.set_value();
  world.finish();
}

// The engine wakes when the pool has something, and ends while it has not.
TEST(CostlyGrammar, TheEngineWaitsForThePoolAndNotTheOtherWayRound) {
  const Heard expected = plain(held(1, 25));
  std::promise<void> done;
  std::vector<Heard> heard(5);
  std::atomic<int> left{4};
  {
    Engine engine(
        [] {
          return std::make_unique<FakeRunner>(
              FakeRunner::Options{.context = 2048, .pages = 512}
          );
        },
        letters(), {}
    );
    for (std::size_t i = 0; i < 4; ++i) {
      engine.submit(held(1, 25), [&, i](const Event& e) {
        heard[i].hear(e);
        if (e.kind == Event::Kind::end && --left == 0) done.set_value();
      });
    }
    done.get_future().wait();
    EXPECT_GT(engine.stats().grammars.threads, 1U);
    engine.submit(held(1, 1000), [&](const Event& e) { heard[4].hear(e); });
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(heard[i].ids, expected.ids);
  EXPECT_EQ(heard[4].end->finish, Finish::cancelled);
}

}  // namespace
}  // namespace hearth::infer
