#include "hearth/infer/engine/engine.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/engine/scheduler.h"

namespace hearth::infer {
namespace {

std::unique_ptr<Speculator> speculator_of(const EngineOptions& options) {
  if (options.make_draft) {
    return std::make_unique<DraftSpeculator>(options.make_draft());
  }
  if (options.ngram != 0)
    return std::make_unique<NgramSpeculator>(options.ngram);
  return nullptr;
}

}  // namespace

struct Engine::State {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  EngineOptions options;
  // Facts about the runner, read once: only the engine's thread may ask it.
  int vocabulary = 0, context = 0, limit = 0, width = 0;

  mutable std::mutex mutex;
  std::condition_variable wake;   // the thread has something to do
  std::condition_variable ended;  // a request has, or the work
  std::vector<std::unique_ptr<Job>> incoming;
  std::vector<RequestId> cancelled;
  std::vector<std::pair<RequestId, bool>> holds;  // in the order they came
  EngineStats stats;
  RequestId last_id = 0;
  std::size_t unfinished = 0;
  bool draining = false, stopping = false, resting = false;
  std::thread thread;
  // The thread's own; null before and after its loop.
  const Scheduler* running = nullptr;

  // The tokens' bytes as grammars want them, for each set of stop ids.
  std::mutex vocabularies_mutex;
  std::map<
      std::vector<std::int32_t>,
      std::shared_ptr<const text::GrammarVocabulary>>
      vocabularies;

  // Ends before what its threads wake.
  text::GrammarPool grammars{[this] {
    {
      const std::lock_guard lock(mutex);
    }  // the thread waits, or looks
    wake.notify_all();
  }};

  std::shared_ptr<const text::GrammarVocabulary> grammar_words(
      const Request& request
  );
  void run(
      const std::function<std::unique_ptr<Runner>()>& make,
      std::promise<void>& ready
  );
  void loop(Scheduler& scheduler);
  Listener counted(Listener listener);
  // The caller holds the mutex.
  std::size_t most_at_once() const {
    return options.max_queue +
           static_cast<std::size_t>(std::max(options.max_batch, 1));
  }
  void check_room(std::size_t requests) const;
};

// The end of a request is counted after its listener has heard of it, so that
// drain() returns when nobody is called any more. Whoever hears of an end finds
// its tokens in the statistics.
Listener Engine::State::counted(Listener listener) {
  return [this, listener = std::move(listener)](const Event& event) {
    const bool end = event.kind == Event::Kind::end;
    const auto count = [&] {
      const std::lock_guard lock(mutex);
      --unfinished;
      ended.notify_all();
    };
    if (end && running != nullptr) {
      const std::lock_guard lock(mutex);
      stats = running->stats();
    }
    try {
      if (listener) listener(event);
    } catch (...) {
      if (end) count();
      throw;
    }
    if (end) count();
  };
}

std::shared_ptr<const text::GrammarVocabulary> Engine::State::grammar_words(
    const Request& request
) {
  // A server's requests have one set, or a few.
  constexpr std::size_t kMostSets = 8;
  if (!request.grammar || !tokenizer) return nullptr;
  const std::lock_guard lock(vocabularies_mutex);
  const auto found = vocabularies.find(request.stop_ids);
  if (found != vocabularies.end()) return found->second;
  std::vector<std::string> bytes(static_cast<std::size_t>(vocabulary));
  const auto known = std::min(bytes.size(), tokenizer->id_limit());
  for (std::size_t i = 0; i < known; ++i) {
    bytes[i] = tokenizer->token_bytes(static_cast<std::int32_t>(i));
  }
  if (vocabularies.size() >= kMostSets) vocabularies.clear();
  return vocabularies[request.stop_ids] =
             text::grammar_vocabulary(bytes, request.stop_ids);
}

void Engine::State::check_room(std::size_t requests) const {
  if (draining) {
    throw QueueFull("[infer.Engine.submit] no more requests are taken");
  }
  const std::size_t most = most_at_once();
  if (requests > most) {
    throw UsageError(
        fmt::format(
            "[infer.Engine.submit] at most {} requests may run and wait, got "
            "{} at once",
            most, requests
        )
    );
  }
  // Those that are held take nothing from whoever comes, or no reader of one
  // could be served while slow ones fill the queue. As many of them again may
  // be there.
  const std::size_t held = std::min({stats.held, unfinished, most});
  if (unfinished - held + requests > most) {
    throw QueueFull(
        fmt::format(
            "[infer.Engine.submit] at most {} requests may wait",
            options.max_queue
        )
    );
  }
}

void Engine::State::loop(Scheduler& scheduler) {
  for (;;) {
    std::vector<std::unique_ptr<Job>> jobs;
    std::vector<RequestId> gone;
    std::vector<std::pair<RequestId, bool>> held;
    int batch = 0;
    {
      std::unique_lock lock(mutex);
      stats = scheduler.stats();
      resting = scheduler.idle();
      ended.notify_all();
      wake.wait(lock, [&] {
        return stopping || !incoming.empty() || !cancelled.empty() ||
               !holds.empty() || !scheduler.rests();
      });
      resting = false;
      jobs.swap(incoming);
      gone.swap(cancelled);
      held.swap(holds);
      batch = options.max_batch;
      if (stopping) {
        lock.unlock();
        for (const auto& job : jobs) job->end(Finish::cancelled);
        return;
      }
    }
    scheduler.set_max_batch(batch);
    for (auto& job : jobs) scheduler.add(std::move(job));
    for (const auto& [id, on] : held) {
      if (on) {
        scheduler.hold(id);
      } else {
        scheduler.go_on(id);
      }
    }
    for (const RequestId id : gone) scheduler.cancel(id);
    scheduler.step();
  }
}

void Engine::State::run(
    const std::function<std::unique_ptr<Runner>()>& make,
    std::promise<void>& ready
) {
  std::unique_ptr<Runner> runner;
  std::optional<Scheduler> scheduler;
  try {
    runner = make();
    if (!runner) throw UsageError("[infer.Engine] there must be a runner");
    if (options.batch_invariant && !runner->batch_invariant()) {
      throw UsageError(
          "[infer.Engine] batch_invariant needs a runner that is made for it"
      );
    }
    scheduler.emplace(*runner, options, speculator_of(options), &grammars);
    vocabulary = runner->vocabulary();
    context = runner->context();
    width = runner->width();
  } catch (...) {
    return ready.set_exception(std::current_exception());
  }
  limit = scheduler->limit();
  stats = scheduler->stats();
  ready.set_value();
  running = &*scheduler;
  loop(*scheduler);
  running = nullptr;
}

Engine::Engine(
    std::function<std::unique_ptr<Runner>()> make,
    std::shared_ptr<const text::Tokenizer> tokenizer,
    const EngineOptions& options
)
    : state_(std::make_unique<State>()) {
  state_->tokenizer = std::move(tokenizer);
  state_->options = options;
  std::promise<void> ready;
  auto made = ready.get_future();
  state_->thread = std::thread([&] { state_->run(make, ready); });
  try {
    made.get();
  } catch (...) {
    state_->thread.join();
    throw;
  }
}

Engine::~Engine() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
  state_->thread.join();
}

RequestId Engine::submit(Request request, Listener listener) {
  std::vector<Request> one;
  one.push_back(std::move(request));
  return submit_all(
             std::move(one), [&](std::size_t) { return std::move(listener); }
  ).front();
}

std::vector<RequestId> Engine::submit_all(
    std::vector<Request> requests,
    const std::function<Listener(std::size_t)>& listener_of,
    Effort* effort
) {
  State& s = *state_;
  std::vector<RequestId> ids;
  std::vector<std::unique_ptr<Job>> jobs;
  for (Request& request : requests) {
    check_request(request, s.vocabulary, s.context, s.limit);
    if (request.pooling && s.width == 0) {
      throw UsageError("[infer.Engine.submit] this model gives no vectors");
    }
    const auto words = s.grammar_words(request);
    {
      const std::lock_guard lock(s.mutex);
      ids.push_back(++s.last_id);
    }
    jobs.push_back(
        std::make_unique<Job>(
            ids.back(), std::move(request), s.counted(listener_of(jobs.size())),
            s.tokenizer, words, effort
        )
    );
  }
  {
    const std::lock_guard lock(s.mutex);
    s.check_room(jobs.size());
    s.unfinished += jobs.size();
    for (auto& job : jobs) s.incoming.push_back(std::move(job));
  }
  s.wake.notify_all();
  return ids;
}

void Engine::cancel(RequestId id) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->cancelled.push_back(id);
  }
  state_->wake.notify_all();
}

void Engine::hold(RequestId id) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->holds.emplace_back(id, true);
  }
  state_->wake.notify_all();
}

void Engine::go_on(RequestId id) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->holds.emplace_back(id, false);
  }
  state_->wake.notify_all();
}

void Engine::drain() {
  std::unique_lock lock(state_->mutex);
  state_->draining = true;
  state_->ended.wait(lock, [&] {
    return state_->unfinished == 0 && state_->resting;
  });
}

void Engine::set_max_batch(int sequences) {
  const std::lock_guard lock(state_->mutex);
  state_->options.max_batch = sequences;
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(state_->mutex);
  EngineStats out = state_->stats;
  out.grammars = state_->grammars.state();
  out.waiting += state_->incoming.size();
  for (const auto& job : state_->incoming) {
    out.waits_since =
        std::min(job->waits_since, out.waits_since.value_or(job->waits_since));
  }
  return out;
}

int Engine::limit() const {
  return state_->limit;
}

std::size_t Engine::most_at_once() const {
  const std::lock_guard lock(state_->mutex);
  return state_->most_at_once();
}

int Engine::vocabulary() const {
  return state_->vocabulary;
}

int Engine::width() const {
  return state_->width;
}

}  // namespace hearth::infer
