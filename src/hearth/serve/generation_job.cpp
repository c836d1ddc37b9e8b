#include "hearth/serve/generation_job.h"

#include <algorithm>

#include "hearth/base/clock.h"
#include "hearth/base/effort.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"

namespace hearth::serve {
namespace {

HttpHeaders with(HttpHeaders headers, const char* name, const char* value) {
  headers.emplace_back(name, value);
  return headers;
}

}  // namespace

GenerationJob::GenerationJob(
    JobHost host,
    JobPlan plan,
    std::shared_ptr<HttpReply> reply
)
    : share_(std::move(host.share)),
      host_(std::move(host)),
      plan_(std::move(plan)),
      pieces_(plan_.head, plan_.include_usage),
      reply_(std::move(reply)) {
  if (plan_.response) response_.emplace(*std::move(plan_.response));
  choices_.resize(plan_.requests.size());
  if (!plan_.requests.empty()) plan_.stop_ids = plan_.requests[0].stop_ids;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].whole.index = static_cast<int>(i);
    choices_[i].copy = source_of(i) != i && plan_.requests[i].max_tokens == 0;
    if (!choices_[i].copy) ++unfinished_;
    if (plan_.tool_form != infer::ToolForm::none) {
      choices_[i].tools.emplace(
          plan_.tool_form, plan_.tool_names, plan_.stream
      );
    }
  }
}

void GenerationJob::start(Effort* effort) {
  {
    // Tokens that come before the answer has begun wait here for a moment.
    const std::lock_guard lock(mutex_);
    submit_all(effort);
    if (plan_.stream) begin_stream();
    for (Choice& choice : choices_) {
      const auto echo = echo_of(choice);
      // With log probabilities, the prompt's text is sent together with them.
      if (echo && !plan_.log_probs) add_text(choice, echo->text);
    }
  }
  const std::weak_ptr<GenerationJob> weak = weak_from_this();
  reply_->on_deadline(Clock::now() + host_.timeout, [weak] {
    if (const auto self = weak.lock()) self->time_out();
  });
  reply_->on_gone([weak] {
    if (const auto self = weak.lock()) self->cancel_all();
  });
}

void GenerationJob::submit_all(Effort* effort) {
  std::vector<infer::Request> requests;
  std::vector<std::size_t> choices;  // of each request
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].copy) continue;
    requests.push_back(std::move(plan_.requests[i]));
    choices.push_back(i);
  }
  plan_.requests.clear();
  try {
    const auto ids = host_.engine->submit_all(
        std::move(requests),
        [&](std::size_t i) -> infer::Listener {
          return [self = shared_from_this(),
                  c = choices[i]](const infer::Event& event) {
            self->hear(c, event);
          };
        },
        effort
    );
    for (std::size_t i = 0; i < ids.size(); ++i) {
      choices_[choices[i]].id = ids[i];
    }
    ++host_.metrics->begun;
  } catch (const infer::QueueFull&) {
    ++host_.metrics->rejected;
    throw ApiError(
        429, "too many requests wait already: try again later", {}, "queue_full"
    );
  } catch (const EffortError&) {
    throw;
  } catch (const UsageError& e) {
    throw ApiError(400, plain_message(e.what()));
  }
}

void GenerationJob::begin_stream() {
  HttpHeaders headers =
      with(host_.headers, "Content-Type", "text/event-stream; charset=utf-8");
  host_.metrics->count_answer(host_.route, 200);
  // A line that begins with a colon is no event.
  reply_->begin(
      {200, with(std::move(headers), "X-Accel-Buffering", "no"), {}},
      ": keep-alive\n\n"
  );
  if (response_) return write(response_->begin());
  if (!plan_.head.chat) return;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    write_piece({.index = static_cast<int>(i), .first = true});
  }
}

void GenerationJob::hear(std::size_t index, const infer::Event& event) {
  const std::lock_guard lock(mutex_);
  Choice& choice = choices_[index];
  const bool waits = plan_.log_probs && source_of(index) != index &&
                     !choice.scored && !failed_;
  if (waits) {
    choice.early.push_back(event);
  } else {
    take(index, event);
  }
}

void GenerationJob::take(std::size_t index, const infer::Event& event) {
  switch (event.kind) {
    case infer::Event::Kind::prompt:
      hear_prompt(index, event);
      break;
    case infer::Event::Kind::token:
      hear_token(choices_[index], event.token);
      break;
    case infer::Event::Kind::end:
      hear_end(index, event);
      break;
    case infer::Event::Kind::vector:
      break;  // EmbeddingJob's
  }
}

std::shared_ptr<const PromptEcho> GenerationJob::echo_of(
    const Choice& choice
) const {
  if (plan_.echoes.empty()) return nullptr;
  return plan_.echoes[static_cast<std::size_t>(
      choice.whole.index / plan_.choices_per_prompt
  )];
}

// Gives the prompt's scores to all choices of this prompt, some of which may
// have tokens already.
void GenerationJob::hear_prompt(std::size_t index, const infer::Event& event) {
  if (failed_ || !plan_.log_probs) return;
  const auto scores = std::make_shared<const Tokens>(event.prompt);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    if (source_of(i) != index) continue;
    choice.prompt = scores;
    choice.scored = true;
    if (const auto echo = echo_of(choice)) add_text(choice, echo->text);
    for (const auto& early : std::exchange(choice.early, {})) take(i, early);
  }
}

void GenerationJob::time_token(Choice& choice) {
  const auto now = Clock::now();
  if (!first_token_) {
    first_token_ = true;
    host_.metrics->first_token.observe(seconds_since(began_));
  }
  if (choice.made++ == 0) {
    choice.first_token = now;
  } else {
    host_.metrics->inter_token.observe(to_seconds(now - choice.last_token));
  }
  choice.last_token = now;
}

void GenerationJob::hear_token(
    Choice& choice,
    const infer::GeneratedToken& token
) {
  if (failed_) return;
  time_token(choice);
  if (plan_.log_probs) choice.tokens.push_back(token);
  if (choice.tools) {
    add_parts(
        choice, choice.tools->feed(token, *host_.tokenizer, plan_.stop_ids)
    );
  } else if (!token.text.empty() || plan_.log_probs) {
    add_text(choice, token.text);
  }
}

void GenerationJob::hear_end(std::size_t index, const infer::Event& event) {
  Choice& choice = choices_[index];
  choice.ended = true;
  if (index % static_cast<std::size_t>(plan_.choices_per_prompt) == 0) {
    usage_.cached += event.cached_tokens;
  }
  usage_.made += event.made_tokens;
  --unfinished_;
  if (failed_ || !ended_well(choice, event)) return;
  end_choice(index, event);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].copy && source_of(i) == index) end_choice(i, event);
  }
  if (unfinished_ > 0) return;
  ++host_.metrics->done;
  host_.metrics->whole_request.observe(seconds_since(began_));
  if (plan_.stream) {
    finish_stream();
  } else {
    finish_whole();
  }
  log_end("200");
}

void GenerationJob::end_choice(std::size_t index, const infer::Event& event) {
  Choice& choice = choices_[index];
  choice.ended = true;
  if (index % static_cast<std::size_t>(plan_.choices_per_prompt) == 0) {
    usage_.prompt += event.prompt_tokens;
  }
  if (choice.made > 1) {
    const double time = to_seconds(choice.last_token - choice.first_token);
    host_.metrics->output_token.observe(time / (choice.made - 1));
  }
  finish_choice(choice, event);
}

bool GenerationJob::ended_well(
    const Choice& choice,
    const infer::Event& event
) {
  Metrics& metrics = *host_.metrics;
  if (timed_out_) {
    fail({504, "the answer took too long", {}, "timeout"}, metrics.timed_out);
  } else if (!event.error.empty() && event.request_at_fault) {
    fail({400, plain_message(event.error)}, metrics.failed);
  } else if (!event.error.empty()) {
    fail({500, plain_message(event.error), {}, "engine_error"}, metrics.failed);
  } else if (event.finish == infer::Finish::cancelled && !choice.called_once) {
    fail(
        {503,
         "the server stopped before the answer was whole",
         {},
         "server_stopped"},
        metrics.cancelled
    );
  }
  return !failed_;
}

void GenerationJob::finish_stream() {
  share_.reset();
  if (response_) {
    write(response_->end(choices_[0].whole.finish == "length", usage_));
    return reply_->end();
  }
  if (plan_.include_usage) {
    write(event_line(stream_usage(plan_.head, usage_)));
  }
  write(end_of_events());
  reply_->end();
}

void GenerationJob::finish_response() {
  response_->end(choices_[0].whole.finish == "length", usage_);
  host_.metrics->count_answer(host_.route, 200);
  reply_->send(
      {200, with(host_.headers, "Content-Type", "application/json"),
       to_json_line(response_->whole())}
  );
}

void GenerationJob::finish_whole() {
  if (response_) return finish_response();
  std::vector<ChoicePart> parts;
  std::vector<LogProbs> log_probs;
  parts.reserve(choices_.size());
  for (Choice& c : choices_) {
    log_probs.push_back(take_log_probs(c));
    parts.push_back(std::move(c.whole));
  }
  host_.metrics->count_answer(host_.route, 200);
  const auto writer = std::make_shared<AnswerWriter>(
      plan_.head, parts, std::move(log_probs), usage_
  );
  HttpAnswer answer{
      200, with(host_.headers, "Content-Type", "application/json"), {}
  };
  // An answer that fits one piece is sent with a length; a longer one is
  // written as the client reads it.
  if (!writer->next(answer.body)) {
    share_.reset();
    return reply_->send(answer);
  }
  auto first = std::exchange(answer.body, {});
  reply_->draw(
      answer, [writer, first = std::move(first),
               share = std::move(share_)](std::string& out) mutable {
        if (first.empty()) return writer->next(out);
        out += std::exchange(first, {});
        return true;
      }
  );
}

// In a stream that has begun, the error is the last event.
void GenerationJob::fail(
    const ApiError& error,
    std::atomic<std::uint64_t>& counter
) {
  failed_ = true;
  share_.reset();
  ++counter;
  for (const auto id : unfinished_ids()) host_.engine->cancel(id);
  log_end(std::to_string(error.status()));
  if (plan_.stream) {
    reply_->write(
        response_ ? response_->error(error)
                  : "data: " + error_body(error) + "\n\n"
    );
    reply_->end();
    return;
  }
  HttpAnswer answer = error_answer(error);
  answer.headers.insert(
      answer.headers.end(), host_.headers.begin(), host_.headers.end()
  );
  host_.metrics->count_answer(host_.route, answer.status);
  reply_->send(answer);
}

std::vector<infer::RequestId> GenerationJob::unfinished_ids() const {
  std::vector<infer::RequestId> ids;
  for (const Choice& c : choices_) {
    if (!c.ended && !c.copy) ids.push_back(c.id);
  }
  return ids;
}

void GenerationJob::cancel_all() {
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  failed_ = true;
  ++host_.metrics->cancelled;
  log_end("left");
  for (const auto id : unfinished_ids()) host_.engine->cancel(id);
}

void GenerationJob::time_out() {
  const std::lock_guard lock(mutex_);
  timed_out_ = true;
  for (const auto id : unfinished_ids()) host_.engine->cancel(id);
}

void GenerationJob::cut_off() {
  const std::lock_guard lock(mutex_);
  for (const auto id : unfinished_ids()) host_.engine->cancel(id);
}

void GenerationJob::log_end(std::string_view how) const {
  log_debug(
      "POST {} {} {}+{} tokens {:.0f} ms", host_.route, how, usage_.prompt,
      usage_.made, seconds_since(began_) * 1e3
  );
}

}  // namespace hearth::serve
