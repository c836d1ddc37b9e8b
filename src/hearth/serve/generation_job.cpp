#include "hearth/serve/generation_job.h"

#include <algorithm>

#include <fmt/format.h>

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
    if (plan_.stream) {
      HttpHeaders headers = with(
          host_.headers, "Content-Type", "text/event-stream; charset=utf-8"
      );
      host_.metrics->count_answer(host_.route, 200);
      reply_->begin(
          {200, with(std::move(headers), "X-Accel-Buffering", "no"), {}}
      );
      for (std::size_t i = 0; i < choices_.size(); ++i) {
        ChoicePart part{.index = static_cast<int>(i), .first = true};
        if (plan_.head.chat) write_piece(part);
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
  if (choice.tools) {
    add_parts(choice, choice.tools->feed(text_of(token)));
  } else if (!token.text.empty() || plan_.log_probs) {
    add_text(choice, token.text);
  }
}

std::string GenerationJob::text_of(const infer::GeneratedToken& token) const {
  if (!token.text.empty() || !host_.tokenizer->is_special(token.id)) {
    return token.text;
  }
  // A mark such as [TOOL_CALLS] is not text, but the reader needs it.
  const bool ends =
      std::ranges::find(plan_.stop_ids, token.id) != plan_.stop_ids.end();
  return ends ? "" : host_.tokenizer->id_to_token(token.id).value_or("");
}

void GenerationJob::add_parts(Choice& choice, infer::ToolText parts) {
  if (!parts.text.empty()) add_text(choice, parts.text);
  for (auto& call : parts.calls) add_call(choice, std::move(call));
}

void GenerationJob::add_call(Choice& choice, infer::ToolCall call) {
  Json& calls = choice.whole.tool_calls;
  if (calls.is_null()) calls = Json::array();
  if (plan_.one_tool_call && !calls.empty()) return;
  const auto index = calls.size();
  if (call.id.empty()) {
    call.id = fmt::format(
        "call_{}_{}_{}", plan_.head.id.substr(plan_.head.id.find('-') + 1),
        choice.whole.index, index
    );
  }
  Json made = {
      {"id", call.id},
      {"type", "function"},
      {"function", {{"name", call.name}, {"arguments", call.arguments}}}
  };
  if (plan_.stream) {
    Json delta = {{"index", index}};
    delta.update(made);
    ChoicePart part{.index = choice.whole.index};
    part.tool_calls = Json::array({std::move(delta)});
    write_piece(part);
  }
  calls.push_back(std::move(made));
  if (plan_.one_tool_call) host_.engine->cancel(choice.id);
}

void GenerationJob::add_text(Choice& choice, std::string_view text) {
  if (!plan_.stream) {
    choice.whole.text += text;
    return;
  }
  if (!plan_.log_probs) {
    reply_->write(pieces_.event(choice.whole.index, text));
    return;
  }
  ChoicePart part{.index = choice.whole.index, .text = std::string(text)};
  part.log_probs = take_log_probs(choice);
  write_piece(part);
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

void GenerationJob::write_piece(const ChoicePart& part) {
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
  // It ended because we said so, after the one call it was to make.
  const bool called_once =
      plan_.one_tool_call && !choice.whole.tool_calls.is_null();
  if (timed_out_) {
    fail({504, "the answer took too long", {}, "timeout"});
  } else if (!event.error.empty()) {
    fail({500, event.error, {}, "engine_error"});
  } else if (event.finish == infer::Finish::cancelled && !called_once) {
    ++host_.metrics->cancelled;
    fail({503, "the server stopped before the answer was whole"});
  } else {
    // What was held back as the beginning of a call, and is none, is text.
    if (choice.tools) add_parts(choice, choice.tools->finish());
    choice.whole.finish = !choice.whole.tool_calls.is_null()    ? "tool_calls"
                          : event.finish == infer::Finish::stop ? "stop"
                                                                : "length";
    if (plan_.stream) {
      ChoicePart part{
          .index = choice.whole.index, .finish = choice.whole.finish
      };
      part.log_probs = take_log_probs(choice);
      write_piece(part);
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
  host_.metrics->count_answer(host_.route, 200);
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
  host_.metrics->count_answer(host_.route, answer.status);
  reply_->send(answer);
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
