#include "hearth/infer/engine/engine.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "hearth/infer/engine/fake_runner_test.h"

namespace hearth::infer {
namespace {

using Ids = std::vector<std::int32_t>;

// Collects one request's events and lets a test wait for the end.
struct Answer {
  Ids ids;
  std::promise<Event> end;

  Listener listener() {
    return [this](const Event& e) {
      if (e.kind == Event::Kind::token) ids.push_back(e.token.id);
      if (e.kind == Event::Kind::end) end.set_value(e);
    };
  }
  Event wait() { return end.get_future().get(); }
};

// Lets a runner's steps through one by one, or all.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ || tickets_ > 0; });
    if (!open_) --tickets_;
  }
  void let(int tickets) {
    const std::lock_guard lock(mutex_);
    tickets_ += tickets;
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void shut() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int tickets_ = 0;
  bool open_ = false;
};

std::function<std::unique_ptr<Runner>()> fake(FakeRunner::Options o = {}) {
  return [o] { return std::make_unique<FakeRunner>(o); };
}

FakeRunner::Options gated(Gate& gate) {
  FakeRunner::Options o;
  o.before_step = [&gate](std::size_t) { gate.pass(); };
  return o;
}

Request request(int salt, int tokens) {
  Request r;
  r.prompt = {salt % 32, 5, 9, 2}, r.max_tokens = tokens;
  return r;
}

Ids expected(const Request& r) {
  Ids ids = r.prompt;
  for (int t = 0; t < r.max_tokens; ++t) {
    ids.push_back(greedy(FakeRunner::logits_after(ids, 32)));
  }
  return {
      ids.begin() + static_cast<std::ptrdiff_t>(r.prompt.size()), ids.end()
  };
}

TEST(Engine, AnswersManyThreadsAtOnce) {
  Engine engine(fake(), nullptr, {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        Answer answer;
        const Request r = request(t * 20 + i, 12);
        engine.submit(r, answer.listener());
        EXPECT_EQ(answer.wait().finish, Finish::length);
        EXPECT_EQ(answer.ids, expected(r));
      }
    });
  }
  for (auto& t : threads) t.join();
  engine.drain();
  const auto stats = engine.stats();
  EXPECT_EQ(stats.requests, 120u);
  EXPECT_EQ(stats.made_tokens, 120u * 12u);
  EXPECT_EQ(stats.running + stats.waiting, 0u);
  EXPECT_GT(stats.steps, 0u);
  EXPECT_GT(stats.pool.pages, 0);
}

TEST(Engine, AFullQueueRefuses) {
  Gate gate;
  EngineOptions o;
  o.max_batch = 1, o.max_queue = 2;
  Engine engine(fake(gated(gate)), nullptr, o);
  Answer answers[3];
  for (int i = 0; i < 3; ++i) {
    engine.submit(request(i, 4), answers[i].listener());
  }
  EXPECT_THROW(engine.submit(request(9, 4), {}), QueueFull);
  gate.open();
  for (auto& a : answers) EXPECT_EQ(a.wait().made_tokens, 4);
  engine.drain();
  EXPECT_THROW(engine.submit(request(9, 4), {}), QueueFull);
}

TEST(Engine, CancelIsHeardByItsListenerAlone) {
  Gate gate;
  Engine engine(fake(gated(gate)), nullptr, {});
  Answer first, second;
  const auto id = engine.submit(request(1, 50), first.listener());
  engine.submit(request(2, 10), second.listener());
  gate.let(3);
  engine.cancel(id);
  gate.open();
  EXPECT_EQ(first.wait().finish, Finish::cancelled);
  EXPECT_LT(first.ids.size(), 50u);
  EXPECT_EQ(second.wait().finish, Finish::length);
  engine.cancel(id);
  engine.cancel(12345);
}

TEST(Engine, EndsWhatIsLeftWhenItGoes) {
  Gate gate;
  Answer running, waiting;
  {
    EngineOptions o;
    o.max_batch = 1;
    Engine engine(fake(gated(gate)), nullptr, o);
    engine.submit(request(1, 200), running.listener());
    engine.submit(request(2, 200), waiting.listener());
    gate.let(2);
    gate.open();
  }
  running.wait();
  waiting.wait();
}

TEST(Engine, RequestsThatCannotRunAreRefusedAtOnce) {
  FakeRunner::Options small;
  small.pages = 4;  // 16 tokens
  Engine engine(fake(small), nullptr, {});
  EXPECT_EQ(engine.limit(), 16);
  const auto refused = [&](const std::function<void(Request&)>& spoil) {
    Request r = request(1, 4);
    spoil(r);
    EXPECT_THROW(engine.submit(r, {}), UsageError);
  };
  refused([](Request& r) { r.prompt.clear(); });
  refused([](Request& r) { r.prompt.assign(16, 1); });
  refused([](Request& r) { r.prompt = {1, 32}; });
  refused([](Request& r) { r.prompt = {-1}; });
  refused([](Request& r) { r.max_tokens = 0; });
  refused([](Request& r) { r.sampling.top_p = 0; });
  refused([](Request& r) { r.stop = {"x"}; });
  refused([](Request& r) { r.logit_bias = {{40, 1.0f}}; });
  refused([](Request& r) { r.log_probs = -1; });
  EXPECT_EQ(engine.stats().requests, 0u);
}

TEST(Engine, ThrowsWhatTheRunnersMakerThrows) {
  const auto broken = []() -> std::unique_ptr<Runner> {
    throw FormatError("no such model");
  };
  EXPECT_THROW(Engine(broken, nullptr, {}), FormatError);
}

TEST(Engine, AListenerThatThrowsEndsItsRequest) {
  Engine engine(fake(), nullptr, {});
  std::promise<Event> end;
  engine.submit(request(1, 20), [&](const Event& e) {
    if (e.kind == Event::Kind::end) return end.set_value(e);
    throw std::runtime_error("the client is gone");
  });
  const Event e = end.get_future().get();
  EXPECT_EQ(e.finish, Finish::cancelled);
  EXPECT_EQ(e.error, "the client is gone");
  Answer next;
  engine.submit(request(2, 5), next.listener());
  EXPECT_EQ(next.wait().made_tokens, 5);
}

TEST(Engine, StopIdsEndAndAreTheLastToken) {
  Engine engine(fake(), nullptr, {});
  Request r = request(3, 20);
  const Ids all = expected(r);
  r.stop_ids = {all[4]};
  Answer answer;
  engine.submit(r, answer.listener());
  EXPECT_EQ(answer.wait().finish, Finish::stop);
  const auto first = std::ranges::find(all, all[4]) - all.begin();
  EXPECT_EQ(answer.ids, Ids(all.begin(), all.begin() + first + 1));
}

// 64 clients that ask again as soon as they are answered, 8 at a time: over
// the same number of steps nobody gets much less than the others.
TEST(Engine, EqualClientsGetEqualShares) {
  EngineOptions o;
  o.max_batch = 8;
  FakeRunner::Options r;
  r.pages = 512;
  Engine engine(fake(r), nullptr, o);
  constexpr int kClients = 64;
  std::atomic<int> left{kClients * 40};
  std::vector<int> answered(kClients, 0);
  std::atomic<int> open{kClients};
  std::promise<void> done;
  std::function<void(int)> ask = [&](int client) {
    engine.submit(request(client, 8), [&, client](const Event& e) {
      if (e.kind != Event::Kind::end) return;
      ++answered[static_cast<std::size_t>(client)];
      if (--left > 0) {
        ask(client);
      } else if (--open == 0) {
        done.set_value();
      }
    });
  };
  for (int c = 0; c < kClients; ++c) ask(c);
  done.get_future().get();
  std::ranges::sort(answered);
  EXPECT_GE(answered.front(), 0.8 * answered[kClients / 2]);
}

TEST(Engine, SubmitsAllOrNone) {
  Gate gate;
  EngineOptions o;
  o.max_batch = 1, o.max_queue = 2;
  Engine engine(fake(gated(gate)), nullptr, o);
  std::vector<Answer> answers(3);
  const auto listener = [&](std::size_t i) { return answers[i].listener(); };
  const std::vector<Request> two{request(1, 3), request(2, 3)};
  EXPECT_EQ(engine.submit_all(two, listener).size(), 2u);
  EXPECT_THROW(engine.submit_all(two, listener), QueueFull);
  // Four would never fit.
  const auto nobody = [](std::size_t) { return Listener(); };
  EXPECT_THROW(engine.submit_all({4, request(1, 3)}, nobody), UsageError);
  // What was refused takes no room.
  engine.submit(request(3, 3), answers[2].listener());
  gate.open();
  for (auto& answer : answers) EXPECT_EQ(answer.wait().error, "");
  EXPECT_EQ(engine.stats().requests, 3u);
}

TEST(Engine, HoldsAndGoesOn) {
  Gate gate;
  Engine engine(fake(gated(gate)), nullptr, {});
  Answer held, other;
  const auto id = engine.submit(request(1, 30), held.listener());
  gate.let(3);
  while (engine.stats().steps < 3) std::this_thread::yield();
  engine.hold(id);
  gate.open();
  while (engine.stats().held == 0) std::this_thread::yield();
  EXPECT_LT(held.ids.size(), 30u);
  engine.submit(request(2, 5), other.listener());
  other.wait();
  engine.go_on(id);
  EXPECT_EQ(held.wait().finish, Finish::length);
  EXPECT_EQ(held.ids, expected(request(1, 30)));
}

// Their readers are slow, and nobody else's fault.
TEST(Engine, HeldRequestsKeepNobodyOut) {
  Gate gate;
  EngineOptions options;
  options.max_batch = 2;
  options.max_queue = 1;
  Engine engine(fake(gated(gate)), nullptr, options);
  // An end is counted a moment after it was heard.
  const auto submit = [&](const Request& asked, Answer& answer) {
    for (int i = 0; i < 5000; ++i) {
      try {
        return engine.submit(asked, answer.listener());
      } catch (const QueueFull&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    throw std::runtime_error("there is no room");
  };
  std::vector<RequestId> ids;
  const auto hold = [&](std::vector<Answer>& answers, std::size_t in_all) {
    gate.shut();  // none ends before it is held
    for (Answer& answer : answers) {
      ids.push_back(submit(request(1, 200), answer));
      engine.hold(ids.back());
    }
    gate.open();
    while (engine.stats().held < in_all) std::this_thread::yield();
  };
  std::vector<Answer> slow(3), more(3);
  hold(slow, 3);
  for (int i = 0; i < 3; ++i) {
    Answer honest;
    const Request asked = request(i, 5);
    submit(asked, honest);
    EXPECT_EQ(honest.wait().finish, Finish::length);
    EXPECT_EQ(honest.ids, expected(asked));
  }
  // So many held ones are let in besides, and no more.
  hold(more, 6);
  EXPECT_THROW(engine.submit(request(3, 5), {}), QueueFull);
  for (const RequestId id : ids) engine.go_on(id);
  for (auto* list : {&slow, &more}) {
    for (Answer& answer : *list) {
      EXPECT_EQ(answer.wait().finish, Finish::length);
    }
  }
}

TEST(Engine, KnowsItsPoolFromTheStart) {
  const Engine engine(fake(), nullptr, {});
  EXPECT_EQ(engine.stats().pool.pages, 64);
}

}  // namespace
}  // namespace hearth::infer
