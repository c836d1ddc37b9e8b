// What a job makes of tokens: text, calls, log probabilities, pieces of a
// stream.
#include "hearth/serve/generation_job.h"
#include "hearth/serve/random_id.h"

namespace hearth::serve {
namespace {

// Mistral's templates take nine letters and digits, and nothing else; the
// others take anything.
constexpr std::size_t kLettersOfId = 9;

// Null where there are none.
Json log_prob_list(LogProbs log_probs) {
  if (log_probs.empty()) return {};
  const auto text = LogProbsWriter(std::move(log_probs)).rest();
  return parse_json(text, "log probabilities")["content"];
}

}  // namespace

void GenerationJob::add_parts(Choice& choice, const infer::ToolText& parts) {
  if (!parts.text.empty()) add_text(choice, parts.text);
  for (const auto& call : parts.calls) add_call(choice, call);
  for (const auto& piece : parts.pieces) add_piece(choice, piece);
}

void GenerationJob::add_call(Choice& choice, const infer::ToolCall& call) {
  if (choice.called_once) return;
  const std::string id = random_word(kLettersOfId);
  Json& calls = choice.whole.tool_calls;
  if (calls.is_null()) calls = Json::array();
  calls.push_back(infer::tool_call_json(call, id));
  if (response_) {
    response_->piece(
        {.begins = true,
         .ends = true,
         .name = call.name,
         .id = call.id,
         .arguments = call.arguments},
        id
    );
  }
  end_after_call(choice);
}

void GenerationJob::end_after_call(Choice& choice) {
  if (!plan_.one_tool_call) return;
  choice.called_once = true;
  host_.engine->cancel(choice.id);
}

void GenerationJob::add_piece(
    Choice& choice,
    const infer::ToolCallPiece& piece
) {
  if (choice.called_once) return;
  const std::string id =
      piece.begins ? random_word(kLettersOfId) : std::string();
  Json& calls = choice.whole.tool_calls;
  if (calls.is_null()) calls = Json::array();
  Json delta;
  if (piece.begins) {
    delta = infer::tool_call_json(
        {.name = piece.name, .arguments = piece.arguments, .id = piece.id}, id
    );
    calls.push_back(delta);
  } else {
    delta = {{"function", {{"arguments", piece.arguments}}}};
  }
  if (response_) {
    write(response_->piece(piece, id));
  } else if (piece.begins || !piece.arguments.empty()) {
    Json numbered = {{"index", calls.size() - 1}};
    numbered.update(delta);
    ChoicePart part{.index = choice.whole.index};
    part.tool_calls = Json::array({std::move(numbered)});
    write_piece(part);
  }
  if (piece.ends) end_after_call(choice);
}

void GenerationJob::add_text(Choice& choice, std::string_view text) {
  if (response_) {
    const std::string events =
        response_->text(text, log_prob_list(take_log_probs(choice)));
    if (plan_.stream) write(events);
    return;
  }
  if (!plan_.stream) {
    choice.whole.text += text;
    return;
  }
  if (!plan_.log_probs) {
    write(pieces_.event(choice.whole.index, text));
    return;
  }
  const ChoicePart part{.index = choice.whole.index, .text = std::string(text)};
  write_piece(part, take_log_probs(choice));
}

LogProbs GenerationJob::take_log_probs(Choice& choice) {
  if (!plan_.log_probs) return {};
  return {
      .tokenizer = host_.tokenizer,
      .chat = plan_.head.chat,
      .ids = plan_.token_ids,
      .prompt = std::exchange(choice.prompt, nullptr),
      .echo = echo_of(choice),
      .made = std::exchange(choice.tokens, {}),
      .offset = choice.offset
  };
}

void GenerationJob::write_piece(const ChoicePart& part, LogProbs log_probs) {
  const std::string event =
      event_line(stream_piece(plan_.head, part, plan_.include_usage));
  if (log_probs.empty()) return write(event);
  LogProbsWriter writer(std::move(log_probs));
  const auto frame = cut_at_log_probs(event);
  write(frame.front() + writer.rest() + frame.back());
  choices_[static_cast<std::size_t>(part.index)].offset = writer.offset();
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
  if (!plan_.stream || response_) return;
  const ChoicePart part{
      .index = choice.whole.index, .finish = choice.whole.finish
  };
  write_piece(part, take_log_probs(choice));
}

}  // namespace hearth::serve
