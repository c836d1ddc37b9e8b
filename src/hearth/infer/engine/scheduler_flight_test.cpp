// Steps that are sent ahead of their tokens, over a runner that chooses for
// itself: every text must be what it is without.
#include <gtest/gtest.h>

#include "hearth/infer/engine/fake_runner_test.h"
#include "hearth/infer/engine/letters_test.h"
#include "hearth/infer/engine/scheduler.h"

namespace hearth::infer {
namespace {

using Ids = std::vector<std::int32_t>;

// Takes the likeliest token, and tells it when it is asked.
class ChoosingRunner : public FakeRunner {
 public:
  using FakeRunner::FakeRunner;
  bool chooses() const override { return true; }
  void send(std::span<const DrawnRow> rows) override {
    if (fails_at == sends) throw OutOfMemory("[test] no memory for a step");
    ++sends;
    Ids ids;
    std::vector<RunnerPart> parts;
    for (const DrawnRow& row : rows) {
      ids.push_back(row.id ? *row.id : chosen_.at(row.sequence));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      parts.push_back({rows[i].sequence, {&ids[i], 1}, LogitsOf::last});
    }
    const auto logits = step(parts);
    const auto width = static_cast<std::size_t>(vocabulary());
    auto& flight = flights_.emplace_back();
    chosen_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      flight.push_back(greedy(logits.subspan(i * width, width)));
      chosen_[rows[i].sequence] = flight.back();
    }
    most_ahead = std::max(most_ahead, flights_.size());
  }
  Ids receive() override {
    if (breaks_at == received++) {
      flights_.pop_front();
      throw Error("[test] the device is lost");
    }
    Ids out = flights_.front();
    flights_.pop_front();
    return out;
  }
  bool under_way() const { return !flights_.empty(); }

  int sends = 0, received = 0, fails_at = -1, breaks_at = -1;
  std::size_t most_ahead = 0;

 private:
  std::deque<Ids> flights_;
  std::map<SequenceId, std::int32_t> chosen_;
};

struct Heard {
  Ids ids;
  std::size_t scored = 0;  // tokens with alternatives
  std::optional<Event> end;
};

struct World {
  ChoosingRunner runner;
  std::vector<std::unique_ptr<Heard>> heard;
  Scheduler scheduler;

  explicit World(FakeRunner::Options r = {}, const EngineOptions& e = {})
      : runner(std::move(r)), scheduler(runner, e) {}

  Heard& add(Request request) {
    heard.push_back(std::make_unique<Heard>());
    Heard* h = heard.back().get();
    scheduler.add(
        std::make_unique<Job>(
            heard.size(), std::move(request),
            [h](const Event& e) {
              EXPECT_FALSE(h->end) << "an event after the end";
              if (e.kind == Event::Kind::end) h->end = e;
              if (e.kind != Event::Kind::token) return;
              h->ids.push_back(e.token.id);
              h->scored += e.token.top.size();
            },
            letters(), letter_words()
        )
    );
    return *h;
  }
  void finish(int most = 10000) {
    while (!scheduler.idle() && most-- > 0) scheduler.step();
    EXPECT_TRUE(scheduler.idle());
  }
};

Ids begun(int tokens, int salt = 0) {
  Ids out;
  for (int i = 0; i < tokens; ++i) out.push_back((i * 7 + salt * 5 + 3) % 32);
  return out;
}

Ids expected(Ids ids, int tokens, int adapter = -1) {
  const auto prompt = static_cast<std::ptrdiff_t>(ids.size());
  for (int t = 0; t < tokens; ++t) {
    ids.push_back(greedy(FakeRunner::logits_after(ids, 32, adapter)));
  }
  return {ids.begin() + prompt, ids.end()};
}

Request request(Ids prompt, int tokens) {
  Request out;
  out.prompt = std::move(prompt), out.max_tokens = tokens;
  return out;
}

TEST(SchedulerFlight, TextsAreWhatTheyAreWithoutIt) {
  for (const int chunk : {1, 5, 256}) {
    for (const int batch : {1, 3, 16}) {
      EngineOptions o;
      o.prefill_chunk = chunk, o.max_batch = batch;
      World world({}, o);
      std::vector<Heard*> heard;
      for (int i = 0; i < 6; ++i) {
        heard.push_back(&world.add(request(begun(3 + 4 * i, i), 9 + i)));
        if (i > 3) world.scheduler.step();
      }
      world.finish();
      for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(heard[i]->ids, expected(begun(3 + 4 * i, i), 9 + i)) << i;
        ASSERT_TRUE(heard[i]->end);
        EXPECT_EQ(heard[i]->end->finish, Finish::length);
        EXPECT_EQ(heard[i]->end->made_tokens, 9 + i);
      }
      EXPECT_EQ(world.runner.most_ahead, 2u);
      EXPECT_EQ(world.scheduler.stats().made_tokens, 69u);
    }
  }
}

// What was fed behind the end is no harm to those who go on, nor to a prompt
// that begins with this text.
TEST(SchedulerFlight, OneEndsAtAStopBeforeTheStepAfterItIsKnown) {
  World world;
  const Ids text = expected(begun(20), 12);
  Request stops = request(begun(20), 12);
  stops.stop_ids = {text[5]};
  const auto first = std::ranges::find(text, text[5]) - text.begin();
  const Heard& a = world.add(stops);
  const Heard& b = world.add(request(begun(9, 2), 30));
  world.finish();
  EXPECT_EQ(a.ids, Ids(text.begin(), text.begin() + first + 1));
  ASSERT_TRUE(a.end);
  EXPECT_EQ(a.end->finish, Finish::stop);
  EXPECT_EQ(b.ids, expected(begun(9, 2), 30));
  Ids again = begun(20);
  again.insert(again.end(), a.ids.begin(), a.ids.end());
  again.push_back(1);
  const Heard& c = world.add(request(again, 4));
  world.finish();
  EXPECT_EQ(c.ids, expected(again, 4));
  ASSERT_TRUE(c.end);
  EXPECT_GE(c.end->cached_tokens, 20);
}

TEST(SchedulerFlight, ThoseWhoNeedTheHostRunBeside) {
  World world;
  Request scored = request(begun(5, 1), 8);
  scored.log_probs = 2;
  Request other = request(begun(6, 2), 8);
  other.adapter = 0;
  Request biased = request(begun(7, 3), 8);
  biased.logit_bias = {{4, -1e9f}};
  const Heard& plain = world.add(request(begun(4), 20));
  const Heard& a = world.add(scored);
  const Heard& b = world.add(other);
  const Heard& c = world.add(biased);
  world.finish();
  EXPECT_EQ(plain.ids, expected(begun(4), 20));
  EXPECT_EQ(a.ids, expected(begun(5, 1), 8));
  EXPECT_EQ(a.scored, 16u);
  EXPECT_EQ(b.ids, expected(begun(6, 2), 8, 0));
  EXPECT_EQ(c.ids.size(), 8u);
  EXPECT_EQ(std::ranges::count(c.ids, 4), 0);
}

TEST(SchedulerFlight, HeldAndCancelledOnTheWay) {
  World world;
  const Heard& a = world.add(request(begun(4), 30));
  const Heard& b = world.add(request(begun(5, 1), 30));
  const Heard& c = world.add(request(begun(6, 2), 30));
  for (int i = 0; i < 5; ++i) world.scheduler.step();
  ASSERT_TRUE(world.runner.under_way());
  world.scheduler.hold(1);
  const auto at = a.ids.size();
  world.scheduler.cancel(2);
  for (int i = 0; i < 5; ++i) world.scheduler.step();
  EXPECT_EQ(a.ids.size(), at);
  ASSERT_TRUE(b.end);
  EXPECT_EQ(b.end->finish, Finish::cancelled);
  world.scheduler.go_on(1);
  world.finish();
  EXPECT_EQ(a.ids, expected(begun(4), 30));
  EXPECT_EQ(c.ids, expected(begun(6, 2), 30));
}

TEST(SchedulerFlight, FewPagesMakeSomeBeginAgain) {
  FakeRunner::Options few;
  few.pages = 14;
  for (const bool cache : {false, true}) {
    EngineOptions o;
    o.prefix_cache = cache;
    World world(few, o);
    std::vector<Heard*> heard;
    for (int i = 0; i < 4; ++i) {
      heard.push_back(&world.add(request(begun(6, i), 20)));
    }
    world.finish();
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(heard[i]->ids, expected(begun(6, i), 20)) << i;
    }
    EXPECT_GT(world.scheduler.stats().preempted, 0u);
  }
}

TEST(SchedulerFlight, AlonePastTheLastPageItEnds) {
  FakeRunner::Options few;
  few.pages = 5;
  World world(few);
  const Heard& a = world.add(request(begun(6), 100));
  world.finish();
  EXPECT_EQ(a.ids, expected(begun(6), 14));
  ASSERT_TRUE(a.end);
  EXPECT_EQ(a.end->finish, Finish::length);
}

TEST(SchedulerFlight, AStepWithoutMemoryIsMadeWithFewer) {
  World world;
  world.runner.fails_at = 4;
  const Heard& a = world.add(request(begun(4), 12));
  const Heard& b = world.add(request(begun(5, 1), 12));
  for (int i = 0; i < 6; ++i) world.scheduler.step();
  world.runner.fails_at = -1;
  world.finish();
  EXPECT_EQ(a.ids, expected(begun(4), 12));
  EXPECT_EQ(b.ids, expected(begun(5, 1), 12));
}

TEST(SchedulerFlight, WhatBreaksOnTheDeviceEndsThoseWhoWereThere) {
  World world;
  world.runner.breaks_at = 3;
  const Heard& a = world.add(request(begun(4), 12));
  const Heard& b = world.add(request(begun(5, 1), 12));
  world.finish();
  for (const Heard* h : {&a, &b}) {
    ASSERT_TRUE(h->end);
    EXPECT_EQ(h->end->finish, Finish::cancelled);
    EXPECT_NE(h->end->error.find("lost"), std::string::npos);
  }
  world.runner.breaks_at = -1;
  const Heard& c = world.add(request(begun(6, 2), 12));
  world.finish();
  EXPECT_EQ(c.ids, expected(begun(6, 2), 12));
}

}  // namespace
}  // namespace hearth::infer
