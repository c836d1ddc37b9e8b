#include "hearth/serve/generation_job.h"

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/base/log.h"

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
    : host_(std::move(host)),
      plan_(std::move(plan)),
      pieces_(plan_.head, plan_.include_usage),
      reply_(std::move(reply)) {
  choices_.resize(plan_.requests.size());
  if (!plan_.requests.empty()) plan_.stop_ids = plan_.requests[0].stop_ids;
  unfinished_ = choices_.size();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].whole.index = static_cast<int>(i);
    if (plan_.tool_form != infer::ToolForm::none) {
      choices_[i].tools.emplace(plan_.tool_form, plan_.tool_names);
    }
  }
}

void GenerationJob::start() {
  {
    // Tokens that come before the answer has begun wait here for a moment.
    const std::lock_guard lock(mutex_);
    submit_all();
    if (plan_.stream) begin_stream();
    for (std::size_t i = 0; i < plan_.echoes.size(); ++i) {
      // With log probabilities the text waits for them.
      if (!plan_.log_probs) add_text(choices_[i], plan_.echoes[i].text);
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
  try {
    const auto ids = host_.engine->submit_all(
        std::move(plan_.requests), [&](std::size_t i) -> infer::Listener {
          return [self = shared_from_this(), i](const infer::Event& event) {
            self->hear(i, event);
          };
        }
    );
    for (std::size_t i = 0; i < ids.size(); ++i) choices_[i].id = ids[i];
    ++host_.metrics->begun;
  } catch (const infer::QueueFull&) {
    ++host_.metrics->rejected;
    throw ApiError(
        429, "too many requests wait already: try again later", {}, "queue_full"
    );
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
      {200, with(std::move(headers), "X-Accel-Buffering", "no"), {}}, ":\n\n"
  );
  if (!plan_.head.chat) return;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    write_piece({.index = static_cast<int>(i), .first = true});
  }
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
  const auto index = static_cast<std::size_t>(choice.whole.index);
  add_text(choice, plan_.echoes[index].text);
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
    usage_.prompt += event.prompt_tokens;
    usage_.cached += event.cached_tokens;
  }
  usage_.made += event.made_tokens;
  --unfinished_;
  if (failed_ || !ended_well(choice, event)) return;
  finish_choice(choice, event);
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

bool GenerationJob::ended_well(
    const Choice& choice,
    const infer::Event& event
) {
  Metrics& metrics = *host_.metrics;
  // It ended because we said so, after the one call it was to make.
  const bool called_once =
      plan_.one_tool_call && !choice.whole.tool_calls.is_null();
  if (timed_out_) {
    fail({504, "the answer took too long", {}, "timeout"}, metrics.timed_out);
  } else if (!event.error.empty() && event.request_at_fault) {
    fail({400, plain_message(event.error)}, metrics.failed);
  } else if (!event.error.empty()) {
    fail({500, plain_message(event.error), {}, "engine_error"}, metrics.failed);
  } else if (event.finish == infer::Finish::cancelled && !called_once) {
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
  if (plan_.include_usage) {
    write(event_line(stream_usage(plan_.head, usage_)));
  }
  write(end_of_events());
  reply_->end();
}

void GenerationJob::finish_whole() {
  std::vector<ChoicePart> parts;
  parts.reserve(choices_.size());
  for (Choice& c : choices_) {
    c.whole.log_probs = take_log_probs(c);
    parts.push_back(std::move(c.whole));
  }
  host_.metrics->count_answer(host_.route, 200);
  reply_->send(
      {200, with(host_.headers, "Content-Type", "application/json"),
       to_json_line(whole_answer(plan_.head, parts, usage_))}
  );
}

// Of a stream that has begun, the error is its last event.
void GenerationJob::fail(
    const ApiError& error,
    std::atomic<std::uint64_t>& counter
) {
  failed_ = true;
  ++counter;
  for (const auto id : unfinished_ids()) host_.engine->cancel(id);
  log_end(std::to_string(error.status()));
  if (plan_.stream) {
    reply_->write("data: " + error_body(error) + "\n\n");
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
    if (!c.ended) ids.push_back(c.id);
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
