#include "hearth/serve/generation_job.h"

#include <algorithm>

#include "hearth/base/error.h"

namespace hearth::serve {
namespace {

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

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
    : host_(std::move(host)), plan_(std::move(plan)), reply_(std::move(reply)) {
  choices_.resize(plan_.requests.size());
  unfinished_ = choices_.size();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].whole.index = static_cast<int>(i);
  }
}

void GenerationJob::start() {
  {
    // Tokens that come before the answer has begun wait here for a moment.
    const std::lock_guard lock(mutex_);
    submit_all();
    if (plan_.stream) {
      HttpHeaders headers = with(
          host_.headers, "Content-Type", "text/event-stream; charset=utf-8"
      );
      reply_->begin(
          {200, with(std::move(headers), "X-Accel-Buffering", "no"), {}}
      );
      for (std::size_t i = 0; i < choices_.size(); ++i) {
        ChoicePart part{.index = static_cast<int>(i), .first = true};
        if (plan_.head.chat) write_piece(choices_[i], std::move(part));
      }
    }
    for (std::size_t i = 0; i < plan_.echoes.size(); ++i) {
      // With log probabilities the text waits for them.
      if (!plan_.log_probs) add_text(choices_[i], plan_.echoes[i]);
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

void GenerationJob::submit_all() {
  std::size_t i = 0;
  try {
    for (; i < choices_.size(); ++i) {
      choices_[i].id = host_.engine->submit(
          std::move(plan_.requests[i]),
          [self = shared_from_this(), i](const infer::Event& event) {
            self->hear(i, event);
          }
      );
    }
    return;
  } catch (const infer::QueueFull&) {
    failed_ = true;
    ++host_.metrics->rejected;
  } catch (const UsageError&) {
    failed_ = true;
    for (std::size_t k = 0; k < i; ++k) host_.engine->cancel(choices_[k].id);
    throw;
  }
  for (std::size_t k = 0; k < i; ++k) host_.engine->cancel(choices_[k].id);
  throw ApiError(
      429, "too many requests wait already: try again later", {}, "queue_full"
  );
}

void GenerationJob::hear(std::size_t index, const infer::Event& event) {
  const std::lock_guard lock(mutex_);
  Choice& choice = choices_[index];
  switch (event.kind) {
    case infer::Event::Kind::prompt:
      hear_prompt(choice, event);
      break;
    case infer::Event::Kind::token:
      hear_token(choice, event.token);
      break;
    case infer::Event::Kind::end:
      hear_end(index, event);
      break;
  }
}

void GenerationJob::hear_prompt(Choice& choice, const infer::Event& event) {
  if (failed_ || !plan_.log_probs) return;
  choice.tokens = event.prompt;
  choice.scored_prompt = true;
  add_text(choice, plan_.echoes[static_cast<std::size_t>(choice.whole.index)]);
}

void GenerationJob::hear_token(
    Choice& choice,
    const infer::GeneratedToken& token
) {
  if (failed_) return;
  if (!first_token_) {
    first_token_ = true;
    host_.metrics->first_token.observe(seconds_since(began_));
  }
  if (plan_.log_probs) choice.tokens.push_back(token);
  if (!token.text.empty() || plan_.log_probs) add_text(choice, token.text);
}

void GenerationJob::add_text(Choice& choice, std::string_view text) {
  if (!plan_.stream) {
    choice.whole.text += text;
    return;
  }
  ChoicePart part{.index = choice.whole.index, .text = std::string(text)};
  part.log_probs = take_log_probs(choice);
  write_piece(choice, std::move(part));
}

Json GenerationJob::take_log_probs(Choice& choice) {
  if (!plan_.log_probs || choice.tokens.empty()) return {};
  const Tokens tokens = std::exchange(choice.tokens, {});
  if (plan_.head.chat) {
    return chat_log_probs(tokens, *host_.tokenizer, plan_.token_ids);
  }
  return completion_log_probs(
      tokens, *host_.tokenizer, plan_.token_ids,
      std::exchange(choice.scored_prompt, false), choice.offset
  );
}

void GenerationJob::write_piece(Choice& choice, ChoicePart part) {
  choice.spoke = true;
  reply_->write(
      event_line(stream_piece(plan_.head, part, plan_.include_usage))
  );
}

void GenerationJob::hear_end(std::size_t index, const infer::Event& event) {
  Choice& choice = choices_[index];
  choice.ended = true;
  if (index % static_cast<std::size_t>(plan_.choices_per_prompt) == 0) {
    usage_.prompt += event.prompt_tokens;
    usage_.cached += event.cached_tokens;
  }
  usage_.made += event.made_tokens;
  --unfinished_;
  if (failed_) return;
  if (timed_out_) {
    fail({504, "the answer took too long", {}, "timeout"});
  } else if (!event.error.empty()) {
    fail({500, event.error, {}, "engine_error"});
  } else if (event.finish == infer::Finish::cancelled) {
    ++host_.metrics->cancelled;
    fail({503, "the server stopped before the answer was whole"});
  } else {
    choice.whole.finish =
        event.finish == infer::Finish::stop ? "stop" : "length";
    if (plan_.stream) {
      ChoicePart part{
          .index = choice.whole.index, .finish = choice.whole.finish
      };
      part.log_probs = take_log_probs(choice);
      write_piece(choice, std::move(part));
    }
  }
  if (unfinished_ > 0 || failed_) return;
  host_.metrics->whole_request.observe(seconds_since(began_));
  if (plan_.stream) {
    finish_stream();
  } else {
    finish_whole();
  }
}

void GenerationJob::finish_stream() {
  if (plan_.include_usage) {
    reply_->write(event_line(stream_usage(plan_.head, usage_)));
  }
  reply_->write(end_of_events());
  reply_->end();
}

void GenerationJob::finish_whole() {
  std::vector<ChoicePart> parts;
  parts.reserve(choices_.size());
  for (Choice& c : choices_) {
    c.whole.log_probs = take_log_probs(c);
    parts.push_back(std::move(c.whole));
  }
  reply_->send(
      {200, with(host_.headers, "Content-Type", "application/json"),
       to_json_line(whole_answer(plan_.head, parts, usage_))}
  );
}

// Of a stream that has begun, the error is its last event.
void GenerationJob::fail(const ApiError& error) {
  failed_ = true;
  for (const Choice& c : choices_) {
    if (!c.ended) host_.engine->cancel(c.id);
  }
  if (plan_.stream) {
    reply_->write("data: " + error_body(error) + "\n\n");
    reply_->end();
    return;
  }
  HttpAnswer answer = error_answer(error);
  answer.headers.insert(
      answer.headers.end(), host_.headers.begin(), host_.headers.end()
  );
  reply_->send(std::move(answer));
}

void GenerationJob::cancel_all() {
  std::vector<infer::RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    if (!failed_) ++host_.metrics->cancelled;
    failed_ = true;
    for (const Choice& c : choices_) {
      if (!c.ended) ids.push_back(c.id);
    }
  }
  for (const auto id : ids) host_.engine->cancel(id);
}

void GenerationJob::time_out() {
  std::vector<infer::RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    timed_out_ = true;
    for (const Choice& c : choices_) {
      if (!c.ended) ids.push_back(c.id);
    }
  }
  for (const auto id : ids) host_.engine->cancel(id);
}

}  // namespace hearth::serve
