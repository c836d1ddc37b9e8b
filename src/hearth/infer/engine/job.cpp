#include "hearth/infer/engine/job.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::infer {
namespace {

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
  grammar_.emplace(request_.grammar, vocabulary, effort);
  if (!request_.stop.empty()) whole_.emplace(*request_.grammar);
  held_to_grammar_ = request_.grammar_after.empty();
}

// A stop string must not cut a text that the grammar has not finished, but may
// cut what is free before it.
text::StopText::MayEnd Job::end_of_text() {
  if (!request_.grammar) return {};
  return [this](std::string_view text) {
    if (!held_to_grammar_ || text.size() < grammar_begins_) return true;
    return whole_->is_whole(text.substr(grammar_begins_));
  };
}

// With each token, so that no stop string has a long text to read at once.
void Job::read_held_text() {
  const std::string_view text = text_.text();
  if (!whole_ || !held_to_grammar_ || text.size() < grammar_begins_) return;
  whole_->read(text.substr(grammar_begins_));
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
  if (held_to_grammar_) {
    masked_.assign(logits.begin(), logits.end());
    grammar_->mask(masked_);
    logits = masked_;
  }
  return sampler_.pick(logits, tokens_, tokens_.size(), request_.prompt.size());
}

// A token may hold the end of the mark and what follows it.
void Job::follow_grammar(std::int32_t id) {
  if (held_to_grammar_) return grammar_->accept(id);
  std::string bytes = tokenizer_->token_bytes(id);
  if (bytes.empty()) bytes = tokenizer_->id_to_token(id).value_or("");
  before_grammar_ += bytes;
  const std::string& mark = request_.grammar_after;
  const auto at = before_grammar_.find(mark);
  if (at == std::string::npos) {
    const auto keep = std::min(before_grammar_.size(), mark.size() - 1);
    before_grammar_.erase(0, before_grammar_.size() - keep);
    return;
  }
  const auto rest = std::string_view(before_grammar_).substr(at + mark.size());
  held_to_grammar_ = true;
  grammar_begins_ = text_size_ - std::min(text_size_, rest.size());
  grammar_->accept_bytes(rest);
}

bool Job::take(std::span<const float> logits, int limit) {
  Event event;
  event.token = scored_token(logits, pick(logits), request_.log_probs);
  GeneratedToken& token = event.token;
  tokens_.push_back(token.id);
  const auto& stops = request_.stop_ids;
  const bool stop_id = std::ranges::find(stops, token.id) != stops.end();
  if (!stop_id) {
    const std::string text = text_.decode(token.id);
    text_size_ += text.size();
    // Before a stop string is looked for: the grammar says where one may be.
    if (grammar_) follow_grammar(token.id);
    token.text = text_.show(text);
    read_held_text();
    // No stop string goes on behind what is no text.
    const bool mark = tokenizer_ && tokenizer_->is_special(token.id);
    if (mark) token.text += text_.show_held();
  }
  const bool complete = held_to_grammar_ && !stop_id && grammar_->must_end();
  const bool stopped = stop_id || complete || text_.stopped();
  const bool full = made() >= request_.max_tokens || length() >= limit;
  if (stopped || full) token.text += text_.finish();
  tell(event);
  if (stopped || full) end(stopped ? Finish::stop : Finish::length);
  return ended_;
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
  event.made_tokens = made();
  ended_ = true;
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
