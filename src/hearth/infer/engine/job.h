#pragma once
// One request while it is answered: its tokens so far, how the next is chosen,
// and what its listener has heard. Knows no other request and no runner.
#include "hearth/base/clock.h"
#include "hearth/infer/engine/engine.h"
#include "hearth/infer/engine/prefix_cache.h"
#include "hearth/infer/text_out.h"
#include "hearth/text/grammar/grammar_pool.h"
#include "hearth/text/grammar/held_text.h"

namespace hearth::infer {

class Job {
 public:
  // vocabulary is what a grammar's masks are over; without a grammar it may be
  // null. Throws UsageError for options that cannot be.
  Job(RequestId id,
      Request request,
      Listener listener,
      std::shared_ptr<const text::Tokenizer> tokenizer,
      const std::shared_ptr<const text::GrammarVocabulary>& vocabulary =
          nullptr,
      // What the grammar's first use counts to; needed here alone.
      Effort* effort = nullptr);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  RequestId id() const { return id_; }
  const Request& request() const { return request_; }
  // The prompt and what was made after it.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  int length() const { return static_cast<int>(tokens_.size()); }
  int prompt_length() const { return static_cast<int>(request_.prompt.size()); }
  PrefixGroup prefix_group() const {
    return {request_.adapter, request_.scope};
  }
  int made() const { return length() - prompt_length(); }

  // Rows of prompt log probabilities that are still to come begin after this
  // many tokens of the prompt; -1 when none are.
  int scored() const;
  // Logits after each of the prompt's tokens from scored() on, one row each.
  void score_prompt(std::span<const float> rows, int vocabulary);
  // Hidden states of the prompt's next tokens. With the last of them the
  // listener hears the vector, and the end.
  void take_states(std::span<const float> rows, int width);
  // Whether every token of the prompt must be fed, even where its keys and
  // values are known already.
  bool feeds_all() const { return scored() >= 0 || pooler_.has_value(); }
  // The prompt will be fed again from its beginning.
  void start_over();

  // From here on, what its grammar takes that is more than a little work is
  // done by the pool; null: at once.
  void begin(text::GrammarPool* pool);
  // Whether the next token may be chosen: what its grammar allows is known.
  bool ready() const { return under_way_ == nullptr; }
  // Whether what was under way is done, so that collect() has something to do.
  bool has_come_back() const { return under_way_ && under_way_->done(); }
  // Goes on with what has come back: the token that waited for it is told of.
  // Throws what went wrong.
  void collect(int limit);

  // Chooses the next token from the logits after the last one, tells the
  // listener, and returns whether that was the last. limit: tokens that the
  // sequence may have. A token that is much to follow is told of later. Only
  // when ready.
  bool take(std::span<const float> logits, int limit);
  // The same with a token that the runner chose.
  bool take(std::int32_t id, int limit);
  // How a runner may choose the token that comes after `ahead` more; none where
  // it takes the host: for a grammar, or for log probabilities.
  std::optional<Draw> draw(int ahead) const;

  // Tells the listener, once; later calls do nothing.
  void end(Finish finish);
  // Ends the request with an error and, of an Error, its hint; request_at_fault
  // says whether it failed for what it asked for.
  void fail(const std::exception& why, bool request_at_fault = false);
  bool ended() const { return ended_; }

  // Draws guesses as it draws tokens.
  Sampler& sampler() { return sampler_; }

  // The request's sequence in the runner; only the scheduler uses these.
  SequenceId sequence = -1;
  int cached = 0;  // tokens of the prompt that came from the prefix cache
  // Its newest token is fed, and the runner chooses the next.
  bool flying = false;
  int guesses = 0;  // worth making in the next step; grows with their success
  // When it came, or last had a turn.
  Clock::time_point waits_since = Clock::now();

 private:
  RequestId id_;
  Request request_;
  Listener listener_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  Sampler sampler_;
  TextOut text_;
  // Null without a grammar. While its work is under way, it is the pool's.
  std::shared_ptr<text::HeldText> grammar_;
  text::GrammarPool* pool_ = nullptr;
  std::shared_ptr<text::GrammarPool::Ticket> under_way_;
  // A token that was chosen, and its text; until the listener has heard of it.
  struct Untold {
    GeneratedToken token;
    std::string text;
    bool stop_id = false;
  };
  std::optional<Untold> untold_;
  std::vector<float> masked_;
  std::vector<std::int32_t> tokens_;
  std::vector<GeneratedToken> scored_;
  std::optional<Pooler> pooler_;
  bool ended_ = false;

  text::StopText::MayEnd end_of_text();
  std::int32_t pick(std::span<const float> logits);
  std::string spelled(std::int32_t id) const;
  std::string owner() const;
  bool full(int limit) const;
  bool take(const GeneratedToken& token, int limit);
  void go_on(int limit);
  void hand_over(int limit);
  void tell_token(int limit);
  void tell(const Event& event);
  void tell_end(Event event);
  void tell_prompt();
};

// What a request must be; throws UsageError. limit: tokens that fit, the
// model's context or what the pool holds of it.
void check_request(
    const Request& request,
    int vocabulary,
    int context,
    int limit
);

}  // namespace hearth::infer
