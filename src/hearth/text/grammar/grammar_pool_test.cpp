#include "hearth/text/grammar/grammar_pool.h"

#include <condition_variable>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/held_text.h"
#include "hearth/text/grammar/vocabulary_test.h"

namespace hearth::text::grammar {
namespace {

// Waits for the pool as an engine does.
struct Waiting {
  std::mutex mutex;
  std::condition_variable changed;
  GrammarPool pool{[this] {
    {
      const std::lock_guard lock(mutex);
    }
    changed.notify_all();
  }};

  void wait(const GrammarPool::Ticket& ticket) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ticket.done(); });
  }
};

TEST(GrammarPool, HasNoThreadsUntilThereIsWork) {
  Waiting w;
  EXPECT_EQ(w.pool.state().threads, 0U);
  const auto ticket = w.pool.submit("a", [](Effort&) {});
  w.wait(*ticket);
  ticket->rethrow();
  EXPECT_GT(w.pool.state().threads, 1U);
}

TEST(GrammarPool, TellsWhatWentWrong) {
  Waiting w;
  const auto bad = w.pool.submit("a", [](Effort&) -> void {
    throw UsageError("too ambiguous");
  });
  const auto good = w.pool.submit("a", [](Effort&) {});
  w.wait(*bad);
  w.wait(*good);
  EXPECT_THROW(bad->rethrow(), UsageError);
  EXPECT_NO_THROW(good->rethrow());
}

TEST(GrammarPool, WhatIsCalledOffEndsOrDoesNotBegin) {
  Waiting w;
  std::promise<void> begun;
  std::atomic<bool> ran = false;
  const auto first = w.pool.submit("a", [&](Effort& effort) {
    begun.set_value();
    for (;;) effort.look();
  });
  const auto second = w.pool.submit("a", [&](Effort&) { ran = true; });
  begun.get_future().wait();
  second->call_off();
  first->call_off();
  w.wait(*first);
  w.wait(*second);
  EXPECT_THROW(first->rethrow(), EffortError);
  EXPECT_THROW(second->rethrow(), EffortError);
  EXPECT_FALSE(ran);
}

// What a piece of work held is gone when it is done, and never sooner.
TEST(GrammarPool, LetsGoOfWhatItHeld) {
  Waiting w;
  auto held = std::make_shared<int>(1);
  const auto ticket = w.pool.submit("a", [held](Effort&) {});
  w.wait(*ticket);
  EXPECT_EQ(held.use_count(), 1);
  const std::weak_ptr<int> watched = held;
  w.pool.discard("a", std::move(held));
  w.wait(*w.pool.submit("a", [](Effort&) {}));
  EXPECT_TRUE(watched.expired());
}

// Texts of one grammar and one vocabulary, each followed by turns here and in
// the pool, as an engine does: what may follow is the same as in one thread.
TEST(GrammarPool, TextsOfOneGrammarAreFollowedSideBySide) {
  const TestVocabulary words;
  const std::string sources[] = {
      "(a|aa|ab|abc|b|the| the){20,60}x|.{30,80}",
      "[ab]*(12|123|1e)+(name|true)*", "(.{2}x|.{3}a|.{5}b){9}"
  };
  for (const std::string& source : sources) {
    const auto masks = [&](const auto& grammar, unsigned seed, auto&& work) {
      HeldText text(grammar, words.made, {});
      std::mt19937 random(seed);
      std::vector<std::vector<float>> out;
      for (int i = 0; i < 25 && !text.must_end(); ++i) {
        work([&](Effort* e) {
          text.follow(e);
          text.prepare(e);
        });
        auto& row = out.emplace_back(words.bytes.size(), 0.0F);
        text.mask(row);
        std::size_t id = random() % row.size();
        int most = 10'000;
        while (std::isinf(row[id]) && --most > 0) id = random() % row.size();
        const auto token = static_cast<std::int32_t>(id);
        if (token == words.stop || most == 0) break;
        text.push(token, "", words.text_of(token));
      }
      return out;
    };
    const auto alone = [](const auto& step) { step(nullptr); };
    std::vector<std::vector<std::vector<float>>> expected(4), got(4);
    const auto known = grammar_of_regex(source);
    for (unsigned t = 0; t < 4; ++t) expected[t] = masks(known, t, alone);
    Waiting w;
    // The same, of which nothing is known yet.
    const auto fresh = grammar_of_regex("(?:" + source + ")");
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        got[t] = masks(fresh, t, [&](const auto& step) {
          Effort little(300);
          try {
            step(&little);
          } catch (const EffortError&) {
            const auto ticket = w.pool.submit(
                std::to_string(t), [&](Effort& effort) { step(&effort); }
            );
            w.wait(*ticket);
            ticket->rethrow();
          }
        });
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(got, expected) << source;
  }
}

}  // namespace
}  // namespace hearth::text::grammar
