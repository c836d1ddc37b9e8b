#pragma once
// Many requests at once over one runner: admits by pages of keys and values,
// feeds prompts in chunks between decoding steps, and hands tokens to whoever
// asked as they come. Token ids and their text; no HTTP, no templates.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "hearth/base/clock.h"
#include "hearth/base/worker_queue.h"
#include "hearth/infer/engine/runner.h"
#include "hearth/infer/generated.h"
#include "hearth/infer/pooling.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::infer {

struct Request {
  std::vector<std::int32_t> prompt;
  int max_tokens = 256;
  SamplerOptions sampling;
  std::map<std::int32_t, float> logit_bias;
  std::vector<std::int32_t> stop_ids;
  std::vector<std::string> stop;
  // Log probabilities of each new token and of this many alternatives; the
  // same of the prompt's tokens from the second on.
  std::optional<int> log_probs, prompt_log_probs;
  std::shared_ptr<const text::Grammar> grammar;
  // Where this is not empty, the text is free until it contains these
  // characters (special tokens as they are spelled); the grammar holds for what
  // follows them.
  std::string grammar_after;
  int adapter = -1;
  // Who asks: a prompt's beginning is shared only within one scope, in memory
  // and on disk, so that nobody learns what others have asked.
  Hash128 scope;
  // Whoever asks within the scope, by any name: askers take turns.
  std::uint64_t asker = 0;
  // The text goes on with the prompt, so that its first word keeps its space;
  // an answer in a chat begins afresh.
  bool continues_prompt = false;
  // No token is made: the prompt becomes one vector.
  std::optional<Pooling> pooling;
};

// What a listener hears of its request, in this order: prompt (only where
// prompt_log_probs was asked for), tokens or the vector, and one end.
struct Event {
  enum class Kind : unsigned char { prompt, token, vector, end };
  Kind kind = Kind::token;
  GeneratedToken token;                // of Kind::token
  std::vector<GeneratedToken> prompt;  // of Kind::prompt; the first has no
                                       // log probability
  std::vector<float> vector;           // of Kind::vector; of any length
  // The fields below belong to Kind::end.
  Finish finish = Finish::length;
  std::string error;  // why it failed; empty when it did not. A request that
                      // failed has Finish::cancelled
  bool request_at_fault = false;  // it failed for what it asked for
  std::string hint;               // what to do about it, where somebody knows
  int prompt_tokens = 0, cached_tokens = 0, made_tokens = 0;
};

using RequestId = std::uint64_t;
// Called on the engine's thread, never after the end event; it must not block.
using Listener = std::function<void(const Event&)>;

struct EngineOptions {
  int max_batch = 16;       // sequences decoded in one step
  int prefill_chunk = 256;  // prompt tokens between two decoding steps
  // Requests that wait; more are refused. A request counts as waiting while
  // max_batch others are before it; those that are held are not.
  std::size_t max_queue = 256;
  bool prefix_cache = true;
  // Prompts kept on disk, at most so many bytes of them; empty: none.
  std::string prefix_folder;
  std::size_t prefix_bytes = std::size_t{4} << 30;
  // Guesses of coming tokens that one step checks (speculator.h): by the last
  // `ngram` tokens' earlier occurrence, or by a smaller model of the same
  // vocabulary, made on the engine's thread. The text is the same without.
  int ngram = 0;
  std::function<std::unique_ptr<Runner>()> make_draft;
  int draft_tokens = 4;  // guesses at most, for each sequence and step
  int draft_batch = 4;   // more sequences than these are worth no guesses
  // Same seed, same text, whatever else is in the batch. The runner must have
  // been made for it.
  bool batch_invariant = false;
};

struct EngineStats {
  std::size_t waiting = 0, running = 0, held = 0;
  std::uint64_t requests = 0, failed = 0, prompt_tokens = 0, cached_tokens = 0,
                made_tokens = 0, steps = 0,
                preempted = 0,    // begun again later, for want of pages
      drafted = 0, accepted = 0;  // guesses, and those that were right
  KvPool pool;
  // Pages in the pool that belong to requests which run or are held; of the
  // others, those that are not free are kept for later prompts that begin
  // alike.
  int pages_in_use = 0;
  // When the request that waits longest for its turn last had one, or came;
  // none where nobody waits.
  std::optional<Clock::time_point> waits_since;
  // The threads on which grammars that are much work are followed.
  WorkerQueue::State grammars;
};

// The queue is full: try again later.
class QueueFull : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Engine {
 public:
  // `make` is called on the engine's own thread, since arrays belong to the
  // thread that made them; what it throws, the constructor throws. tokenizer
  // may be null: then there is no text.
  Engine(
      std::function<std::unique_ptr<Runner>()> make,
      std::shared_ptr<const text::Tokenizer> tokenizer,
      const EngineOptions& options
  );
  // Cancels what is left and waits for the thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Throws UsageError for a request that can never run, QueueFull when too
  // many wait.
  RequestId submit(Request request, Listener listener);
  // Submits all requests or none. Throws QueueFull where there is no room for
  // all of them, and UsageError for more than can ever wait.
  std::vector<RequestId> submit_all(
      std::vector<Request> requests,
      const std::function<Listener(std::size_t)>& listener_of,
      // What getting them ready counts to: a grammar's first use.
      Effort* effort = nullptr
  );
  // Ends a request: its listener hears Finish::cancelled, unless the request
  // ended before.
  void cancel(RequestId id);
  // A held request makes no tokens, from the next step on, until it goes on:
  // for listeners whose reader is slow. It keeps nobody else waiting.
  void hold(RequestId id);
  void go_on(RequestId id);
  // Takes no more requests and waits until all have ended.
  void drain();
  EngineStats stats() const;
  // Takes effect with the next step; sequences that run already go on.
  void set_max_batch(int sequences);
  // Tokens that a prompt and its answer may have together: the model's context,
  // or what fits the pool.
  int limit() const;
  // Ids are below this.
  int vocabulary() const;
  // Numbers that the vector of a prompt has; 0 where there are no vectors.
  int width() const;
  // Requests that may run and wait at the same time.
  std::size_t most_at_once() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::infer
