#include "hearth/infer/engine/job.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/engine/reading_order.h"

namespace hearth::infer {
namespace {

// What a grammar may take between the steps of all, a quarter of a millisecond
// at most. Where a schema's state was met before, a token takes less than 50 of
// these units, so that JSON is written without leaving the thread; a new state
// takes 6,000 (SmolLM2) to 24,000 (Qwen 2.5), once.
constexpr std::uint64_t kLittleWork = 2'000;

// What lets go of more than this is left to others.
constexpr std::size_t kLarge = std::size_t{1} << 20;

GeneratedToken scored_token(
    std::span<const float> logits,
    std::int32_t id,
    std::optional<int> alternatives
) {
  GeneratedToken token;
  token.id = id;
  if (!alternatives) return token;
  const auto at = static_cast<std::size_t>(id);
  token.log_prob = static_cast<float>(logits[at] - log_sum_exp(logits));
  token.top = top_log_probs(logits, *alternatives);
  return token;
}

// A grammar knows the first token's space, so that the text must have it.
TextStart start_of(const Request& request, const text::Tokenizer* tokenizer) {
  TextStart start =
      text_start(tokenizer, request.prompt, request.continues_prompt);
  if (request.grammar && request.grammar_after.empty()) start.goes_on = true;
  return start;
}

}  // namespace

void check_request(
    const Request& request,
    int vocabulary,
    int context,
    int limit
) {
  request.sampling.check();
  const auto refuse = [](const std::string& what) {
    throw UsageError("[infer.Engine.submit] " + what);
  };
  text::check_stops(request.stop, "infer.Engine.submit");
  if (request.prompt.empty()) refuse("the prompt must have a token, got none");
  // No new token is for those who only want the prompt's log probabilities.
  const bool none = request.prompt_log_probs || request.pooling;
  const int least = none ? 0 : 1;
  if (request.max_tokens < least) {
    refuse(
        fmt::format(
            "max_tokens must be at least {}, got {}", least, request.max_tokens
        )
    );
  }
  const auto room = static_cast<std::size_t>(limit);
  const bool fits = request.max_tokens == 0 ? request.prompt.size() <= room
                                            : request.prompt.size() < room;
  if (!fits) {
    refuse(
        limit < context
            ? fmt::format(
                  "the prompt must leave room for an answer in the {} tokens "
                  "that the memory for keys and values holds, got {} tokens",
                  limit, request.prompt.size()
              )
            : fmt::format(
                  "the prompt must leave room for an answer in the model's "
                  "context of {} tokens, got {} tokens",
                  context, request.prompt.size()
              )
    );
  }
  for (const std::int32_t id : request.prompt) {
    if (id >= 0 && id < vocabulary) continue;
    refuse(
        fmt::format(
            "a token id must be from 0 to {}, got {}", vocabulary - 1, id
        )
    );
  }
  for (const auto& [id, bias] : request.logit_bias) {
    if (id >= 0 && id < vocabulary) continue;
    refuse(
        fmt::format(
            "logit_bias must name tokens from 0 to {}, got {}", vocabulary - 1,
            id
        )
    );
  }
  for (const auto& k : {request.log_probs, request.prompt_log_probs}) {
    if (k && *k < 0) refuse("log_probs must be 0 or more");
  }
}

Job::Job(
    RequestId id,
    Request request,
    Listener listener,
    std::shared_ptr<const text::Tokenizer> tokenizer,
    const std::shared_ptr<const text::GrammarVocabulary>& vocabulary,
    Effort* effort
)
    : id_(id),
      request_(std::move(request)),
      listener_(std::move(listener)),
      tokenizer_(std::move(tokenizer)),
      sampler_(request_.sampling, request_.logit_bias),
      text_(
          tokenizer_,
          start_of(request_, tokenizer_.get()),
          request_.stop,
          end_of_text()
      ),
      tokens_(request_.prompt) {
  if (!tokenizer_ && !request_.stop.empty()) {
    throw UsageError("[infer.Engine.submit] stop strings need a tokenizer");
  }
  if (request_.pooling) pooler_.emplace(*request_.pooling);
  if (!request_.grammar) return;
  if (!vocabulary) {
    throw UsageError("[infer.Engine.submit] a grammar needs a tokenizer");
  }
  grammar_ = std::make_shared<text::HeldText>(
      request_.grammar, vocabulary,
      text::HeldText::Options{request_.grammar_after, !request_.stop.empty()},
      effort
  );
}

Job::~Job() {
  if (under_way_) under_way_->call_off();
  if (pool_ == nullptr || !grammar_) return;
  // The pool's own while it works on it.
  if (!under_way_ && grammar_->bytes() < kLarge) return;
  pool_->discard(owner(), std::move(grammar_));
}

text::StopText::MayEnd Job::end_of_text() {
  if (!request_.grammar) return {};
  return [this](std::string_view text) { return grammar_->may_end(text); };
}

int Job::scored() const {
  const auto all = request_.prompt.size();
  if (!request_.prompt_log_probs || scored_.size() == all) return -1;
  return static_cast<int>(scored_.size()) - (scored_.empty() ? 0 : 1);
}

// The row after token i is about token i + 1; the first token has none.
void Job::score_prompt(std::span<const float> rows, int vocabulary) {
  const auto width = static_cast<std::size_t>(vocabulary);
  const auto& prompt = request_.prompt;
  if (scored_.empty()) scored_.push_back({.id = prompt.front()});
  for (std::size_t r = 0; r * width < rows.size(); ++r) {
    if (scored_.size() == prompt.size()) break;
    scored_.push_back(scored_token(
        rows.subspan(r * width, width), prompt[scored_.size()],
        request_.prompt_log_probs
    ));
  }
  if (scored_.size() == prompt.size()) tell_prompt();
}

void Job::start_over() {
  if (scored() >= 0) scored_.clear();
  if (pooler_) pooler_->clear();
}

void Job::take_states(std::span<const float> rows, int width) {
  pooler_->add(rows, width);
  if (pooler_->rows() < request_.prompt.size()) return;
  Event event;
  event.kind = Event::Kind::vector;
  event.vector = pooler_->result();
  tell(event);
  end(Finish::stop);
}

void Job::tell_prompt() {
  Event event;
  event.kind = Event::Kind::prompt;
  event.prompt = scored_;
  TextOut text(tokenizer_, {}, {});
  for (auto& token : event.prompt) token.text = text.push(token.id);
  event.prompt.back().text += text.finish();
  tell(event);
}

// Log probabilities are the model's own, so the mask goes on a copy.
std::int32_t Job::pick(std::span<const float> logits) {
  if (grammar_ && grammar_->held()) {
    masked_.assign(logits.begin(), logits.end());
    grammar_->mask(masked_);
    logits = masked_;
  }
  return sampler_.pick(logits, tokens_, tokens_.size(), request_.prompt.size());
}

std::string Job::spelled(std::int32_t id) const {
  const std::string bytes = tokenizer_->token_bytes(id);
  return bytes.empty() ? tokenizer_->id_to_token(id).value_or("") : bytes;
}

// Askers take turns in the pool too.
std::string Job::owner() const {
  const auto& [high, low, asker] = asker_of(request_);
  return fmt::format("{:x}.{:x}.{:x}", high, low, asker);
}

bool Job::full(int limit) const {
  return made() >= request_.max_tokens || length() >= limit;
}

void Job::begin(text::GrammarPool* pool) {
  pool_ = pool;
  if (grammar_ && pool_ != nullptr) go_on(std::numeric_limits<int>::max());
}

// Follows the token that was chosen, and looks for what may come next while the
// model works on others.
void Job::go_on(int limit) {
  Effort little(kLittleWork);
  Effort* const effort = pool_ != nullptr ? &little : nullptr;
  try {
    if (grammar_) grammar_->follow(effort);
    if (untold_) tell_token(limit);
    if (grammar_ && pool_ != nullptr && !ended_) grammar_->prepare(effort);
  } catch (const EffortError&) {
    if (pool_ == nullptr) throw;
    hand_over(limit);
  }
}

void Job::hand_over(int limit) {
  const bool last = untold_ && full(limit);
  under_way_ =
      pool_->submit(owner(), [grammar = grammar_, last](Effort& effort) {
        grammar->follow(&effort);
        if (!last && !grammar->must_end()) grammar->prepare(&effort);
      });
}

void Job::collect(int limit) {
  if (ended_ || !has_come_back()) return;
  const auto back = std::move(under_way_);
  under_way_ = nullptr;
  back->rethrow();
  if (untold_) tell_token(limit);
}

bool Job::take(std::span<const float> logits, int limit) {
  return take(scored_token(logits, pick(logits), request_.log_probs), limit);
}

bool Job::take(std::int32_t id, int limit) {
  GeneratedToken token;
  token.id = id;
  return take(token, limit);
}

std::optional<Draw> Job::draw(int ahead) const {
  if (grammar_ || request_.log_probs) return std::nullopt;
  return sampler_.draw(tokens_.size() + static_cast<std::size_t>(ahead));
}

bool Job::take(const GeneratedToken& token, int limit) {
  Untold next;
  next.token = token;
  const std::int32_t id = next.token.id;
  tokens_.push_back(id);
  const auto& stops = request_.stop_ids;
  next.stop_id = std::ranges::find(stops, id) != stops.end();
  if (!next.stop_id) {
    next.text = text_.decode(id);
    if (grammar_) {
      // Before a stop string is looked for: the grammar says where one may be.
      grammar_->push(id, grammar_->held() ? "" : spelled(id), next.text);
    }
  }
  untold_ = std::move(next);
  go_on(limit);
  return ended_;
}

void Job::tell_token(int limit) {
  const Untold next = std::move(*untold_);
  untold_.reset();
  Event event;
  event.token = next.token;
  std::string& text = event.token.text;
  if (!next.stop_id) {
    text = text_.show(next.text);
    // No stop string goes on behind what is no text.
    const bool mark = tokenizer_ && tokenizer_->is_special(next.token.id);
    if (mark) text += text_.show_held();
  }
  const bool complete = grammar_ && !next.stop_id && grammar_->must_end();
  const bool stopped = next.stop_id || complete || text_.stopped();
  const bool last = stopped || full(limit);
  if (last) text += text_.finish();
  tell(event);
  if (last) end(stopped ? Finish::stop : Finish::length);
}

void Job::end(Finish finish) {
  Event event;
  event.finish = finish;
  tell_end(std::move(event));
}

void Job::fail(const std::exception& why, bool request_at_fault) {
  Event event;
  event.finish = Finish::cancelled;
  event.error = why.what();
  if (const auto* ours = dynamic_cast<const Error*>(&why)) {
    event.hint = ours->hint();
  }
  event.request_at_fault = request_at_fault;
  tell_end(std::move(event));
}

void Job::tell_end(Event event) {
  if (ended_) return;
  event.kind = Event::Kind::end;
  event.prompt_tokens = prompt_length();
  event.cached_tokens = cached;
  event.made_tokens = made() - (untold_ ? 1 : 0);
  ended_ = true;
  if (under_way_) under_way_->call_off();
  if (!listener_) return;
  try {
    listener_(event);
  } catch (...) {
    // The listener itself failed, so nobody is left to tell.
  }
}

// A listener that throws has lost its reader: its request ends.
void Job::tell(const Event& event) {
  if (ended_ || !listener_) return;
  try {
    listener_(event);
  } catch (const std::exception& e) {
    fail(e);
  }
}

}  // namespace hearth::infer
