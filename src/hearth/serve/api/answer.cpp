#include "hearth/serve/api/answer.h"

namespace hearth::serve {
namespace {

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json choice_json(const AnswerHead& head, const ChoicePart& c, bool whole) {
  Json out = {{"index", c.index}};
  if (!head.chat) {
    out["text"] = c.text;
  } else {
    Json message = Json::object();
    if (whole || c.first) message["role"] = "assistant";
    const bool calls = !c.tool_calls.is_null();
    if (whole) {
      message["content"] = calls && c.text.empty() ? Json() : Json(c.text);
      message["refusal"] = nullptr;
    } else if (c.first || !c.text.empty()) {
      message["content"] = c.text;
    }
    if (calls) message["tool_calls"] = c.tool_calls;
    out[whole ? "message" : "delta"] = std::move(message);
  }
  out["logprobs"] = nullptr;
  out["finish_reason"] = or_null(c.finish);
  return out;
}

Json head_json(const AnswerHead& head, const char* object) {
  return {
      {"id", head.id},
      {"object", object},
      {"created", head.created},
      {"model", head.model},
      {"system_fingerprint", "hearth"}
  };
}

const char* piece_object(const AnswerHead& head) {
  return head.chat ? "chat.completion.chunk" : "text_completion";
}

}  // namespace

Json usage_json(const Usage& usage) {
  return {
      {"prompt_tokens", usage.prompt},
      {"completion_tokens", usage.made},
      {"total_tokens", usage.prompt + usage.made},
      {"prompt_tokens_details", {{"cached_tokens", usage.cached}}}
  };
}

Json whole_answer(
    const AnswerHead& head,
    const std::vector<ChoicePart>& choices,
    const Usage& usage
) {
  Json out = head_json(head, head.chat ? "chat.completion" : "text_completion");
  out["choices"] = Json::array();
  for (const auto& c : choices) {
    out["choices"].push_back(choice_json(head, c, true));
  }
  out["usage"] = usage_json(usage);
  return out;
}

Json stream_piece(
    const AnswerHead& head,
    const ChoicePart& part,
    bool include_usage
) {
  Json out = head_json(head, piece_object(head));
  out["choices"] = Json::array({choice_json(head, part, false)});
  if (include_usage) out["usage"] = nullptr;
  return out;
}

TextPieces::TextPieces(const AnswerHead& head, bool include_usage) {
  // A piece is cut where its index and its text stand.
  const ChoicePart part{.index = 7, .text = "TEXT"};
  const std::string whole = event_line(stream_piece(head, part, include_usage));
  const auto choices = whole.find("\"choices\":");
  const auto index = whole.find("\"index\":7", choices) + 8;
  const auto text = whole.find("\"TEXT\"", index);
  before_index_ = whole.substr(0, index);
  before_text_ = whole.substr(index + 1, text - index - 1);
  after_text_ = whole.substr(text + 6);
}

std::string TextPieces::event(int index, std::string_view text) const {
  return before_index_ + std::to_string(index) + before_text_ +
         to_json_line(Json(text)) + after_text_;
}

Json stream_usage(const AnswerHead& head, const Usage& usage) {
  Json out = head_json(head, piece_object(head));
  out["choices"] = Json::array();
  out["usage"] = usage_json(usage);
  return out;
}

std::string event_line(const Json& json) {
  return "data: " + to_json_line(json) + "\n\n";
}

std::string_view end_of_events() {
  return "data: [DONE]\n\n";
}

}  // namespace hearth::serve
