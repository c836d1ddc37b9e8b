#pragma once
// Which sequence is fed what in each step of the runner, and what happens when
// its pages run out. One thread; the engine puts it on its own.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>

#include "hearth/base/function_ref.h"
#include "hearth/infer/engine/job.h"
#include "hearth/infer/engine/prefix_cache.h"
#include "hearth/infer/engine/prefix_store.h"
#include "hearth/infer/engine/reading_order.h"
#include "hearth/infer/engine/speculator.h"

namespace hearth::infer {

class Scheduler {
 public:
  // speculator may be null: nothing is guessed. grammars may be null: what
  // they take is done within the steps.
  Scheduler(
      Runner& runner,
      const EngineOptions& options,
      std::unique_ptr<Speculator> speculator = nullptr,
      text::GrammarPool* grammars = nullptr
  );
  // Ends what is left as cancelled.
  ~Scheduler();

  void add(std::unique_ptr<Job> job);
  void cancel(RequestId id);
  // A held job is fed nothing. It keeps its sequence while nobody else needs
  // the pages, and no place in the batch.
  void hold(RequestId id);
  void go_on(RequestId id);
  bool idle() const { return waiting_.empty() && running_.empty(); }
  // Whether a step would do nothing: all that run wait for what the pool works
  // on. The pool says when that has changed.
  bool rests() const;
  // Admits what fits, feeds every running sequence once and hands its tokens
  // out; but for those whose next token is still looked for in their grammar.
  // What goes wrong for one request ends that one; an error of the runner ends
  // all that run.
  void step();

  void set_max_batch(int sequences);
  // Tokens that one sequence may have.
  int limit() const { return limit_; }
  // The statistics, without requests that were not yet added.
  EngineStats stats() const;

 private:
  // Fewer tokens in common are not worth a fork.
  static constexpr int kLeastShared = 16;

  using JobPtr = std::unique_ptr<Job>;
  struct Feed {
    Job* job;
    int tokens;  // of those that are not fed yet
    LogitsOf logits;
    std::vector<std::int32_t> guesses = {};  // fed after them
    bool flies = false;                      // the runner chooses what follows
  };
  struct Beginning {
    PrefixCache::Match match;
    // Another running sequence is about to hold more of it.
    bool wait = false;
  };
  // Of one asker.
  struct Line {
    std::size_t running = 0;
    int readable = 0;  // prompt tokens that a step could read, were it alone
    int shortest = std::numeric_limits<int>::max();  // unread prompt that runs
  };
  using Lines = std::map<Asker, Line>;
  enum class Admitted : unsigned char { yes, waits_for_beginning, no_pages };

  Runner& runner_;
  EngineOptions options_;
  PrefixCache cache_;
  std::unique_ptr<PrefixStore> store_;  // null: nothing is kept on disk
  std::unique_ptr<Speculator> speculator_;
  text::GrammarPool* grammars_;
  // The last step had nothing to feed, and nothing has changed since.
  bool stalled_ = false;
  int limit_;
  // A step that was refused memory runs with fewer until one of them ends.
  std::size_t batch_, most_running_;
  std::size_t batch_guessed_;
  std::deque<JobPtr> waiting_;
  std::vector<JobPtr> running_;  // in the order they were admitted
  std::vector<JobPtr> held_;
  // What the runner was sent and has not been asked for: its jobs, null where
  // one has gone. Two at most: while the second is computed, the tokens of the
  // first are handed out.
  std::deque<std::vector<Job*>> flights_;
  EngineStats counts_;
  Turns admitted_, read_;

  int pending(const Job& job) const;
  int pages_committed() const;
  Beginning beginning_of(const Job& job);
  void bring_from_disk(const Job& job, PrefixCache::Match& match);
  bool make_room(int pages, SequenceId except);
  void admit();
  Lines lines() const;
  // Puts to the front of the queue who is next; false where nobody is, but for
  // those that are passed over.
  bool choose_next(const std::set<Asker>& passed_over);
  Admitted admit_first();
  SequenceId begin(const Job& job, PrefixCache::Match& match);
  int prefill_chunk() const { return std::max(options_.prefill_chunk, 1); }
  bool makes_tokens(const Job& job) const;
  // What a step may read of it.
  int readable(const Job& job) const;
  // Prompt tokens to read now, for each that runs.
  std::vector<int> read_in_turns();
  std::vector<Feed> plan();
  void add_guesses(std::vector<Feed>& feeds);
  void secure_pages(std::vector<Feed>& feeds);
  void preempt_last();
  // Whether tokens are guessed ahead, which takes the host.
  bool guesses() const;
  // Whose next token the runner may choose, of those that make tokens or fly.
  // A step has one adapter.
  bool may_fly(const Job& job, std::optional<int>& adapter) const;
  bool may_go_on(const Job& job) const;
  int pages_needed(const std::vector<Feed>& feeds) const;
  // Sends those that fly, and hands out the tokens of the flight before.
  void fly(const std::vector<Feed>& feeds);
  void receive();
  // Until nothing is under way.
  void land();
  void leave_flights(Job& job);
  void run(const std::vector<Feed>& feeds);
  void hand_out(const Feed& feed, std::span<const float> rows);
  void choose(const Feed& feed, std::span<const float> rows);
  void collect();
  // What goes wrong for one job ends it, and no other.
  bool guarded(Job& job, FunctionRef<void()> work);
  void check_guesses(const Feed& feed, std::span<const float> rows);
  void fail(const std::exception& why);
  void retire();
  void put_away(Job& job);
  bool close_a_held_one();
  void close(Job& job);
};

}  // namespace hearth::infer
