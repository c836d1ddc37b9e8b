// What a job makes of tokens: text, calls, log probabilities, pieces of a
// stream.
#include "hearth/serve/generation_job.h"
#include "hearth/serve/random_id.h"

namespace hearth::serve {

void GenerationJob::add_parts(Choice& choice, const infer::ToolText& parts) {
  if (!parts.text.empty()) add_text(choice, parts.text);
  for (const auto& call : parts.calls) add_call(choice, call);
}

void GenerationJob::add_call(Choice& choice, const infer::ToolCall& call) {
  // Mistral's templates take nine letters and digits, and nothing else; the
  // others take anything.
  constexpr std::size_t kLettersOfId = 9;
  Json& calls = choice.whole.tool_calls;
  if (calls.is_null()) calls = Json::array();
  if (plan_.one_tool_call && !calls.empty()) return;
  const auto index = calls.size();
  Json made = infer::tool_call_json(call, random_word(kLettersOfId));
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
    write(pieces_.event(choice.whole.index, text));
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
  const bool scored = std::exchange(choice.scored_prompt, false);
  const auto index = static_cast<std::size_t>(choice.whole.index);
  return completion_log_probs(
      tokens, *host_.tokenizer, plan_.token_ids,
      scored ? &plan_.echoes[index] : nullptr, choice.offset
  );
}

void GenerationJob::write_piece(const ChoicePart& part) {
  write(event_line(stream_piece(plan_.head, part, plan_.include_usage)));
}

void GenerationJob::write(std::string_view event) {
  reply_->write(event);
  if (!paused_ && reply_->full()) pause();
}

void GenerationJob::pause() {
  paused_ = true;
  for (const auto id : unfinished_ids()) host_.engine->hold(id);
  const std::weak_ptr<GenerationJob> weak = weak_from_this();
  const bool waits = reply_->on_room([weak] {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    self->go_on();
  });
  if (!waits) go_on();
}

void GenerationJob::go_on() {
  paused_ = false;
  for (const auto id : unfinished_ids()) host_.engine->go_on(id);
}

void GenerationJob::finish_choice(Choice& choice, const infer::Event& event) {
  const bool full = event.finish == infer::Finish::length;
  bool cut = false;
  if (choice.tools) {
    // What was held back as the beginning of a call, and is none, is text.
    const auto rest = choice.tools->finish(full);
    cut = rest.cut;
    add_parts(choice, rest);
  }
  const bool called = !choice.whole.tool_calls.is_null();
  choice.whole.finish = called && !cut ? "tool_calls"
                        : full         ? "length"
                                       : "stop";
  if (!plan_.stream) return;
  ChoicePart part{.index = choice.whole.index, .finish = choice.whole.finish};
  part.log_probs = take_log_probs(choice);
  write_piece(part);
}

}  // namespace hearth::serve
