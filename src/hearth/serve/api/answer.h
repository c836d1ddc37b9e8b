#pragma once
// Answers in OpenAI's JSON, whole and in pieces. Pure: tokens in, JSON out.
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::serve {

struct AnswerHead {
  std::string id, model;
  std::int64_t created = 0;
  bool chat = true;
};

struct Usage {
  int prompt = 0, cached = 0, made = 0;
};
Json usage_json(const Usage& usage);

// One choice of an answer: the whole of it, or one piece of a stream.
struct ChoicePart {
  int index = 0;
  std::string text;
  Json tool_calls;     // null, or a list in the API's form
  std::string finish;  // empty: not yet
  bool first = false;  // of a stream: says whose message it is
};

// {"id":…,"object":…,"choices":[…],"usage":…}; the choices' log probabilities,
// here and in pieces, are null: see answer_writer.h.
Json whole_answer(
    const AnswerHead& head,
    const std::vector<ChoicePart>& choices,
    const Usage& usage
);
// One piece of a stream; usage is null in all but the last where it was asked
// for.
Json stream_piece(
    const AnswerHead& head,
    const ChoicePart& part,
    bool include_usage
);
// Writes the pieces that come most often, which have text alone, as events.
// What all of them share is written once, since this runs on the engine's
// thread.
class TextPieces {
 public:
  TextPieces(const AnswerHead& head, bool include_usage);
  std::string event(int index, std::string_view text) const;

 private:
  std::string before_index_, before_text_, after_text_;
};
Json stream_usage(const AnswerHead& head, const Usage& usage);
// The document as one server-sent event.
std::string event_line(const Json& json);
std::string_view end_of_events();

}  // namespace hearth::serve
