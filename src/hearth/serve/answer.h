#pragma once
// Answers in OpenAI's JSON, whole and in pieces. Pure: tokens in, JSON out.
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/data/tokenizer/tokenizer.h"
#include "hearth/infer/generated.h"

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

// What is known of one choice: all of it, or one piece.
struct ChoicePart {
  int index = 0;
  std::string text;
  Json tool_calls;     // null, or a list in the API's form
  Json log_probs;      // null, or what the functions below make
  std::string finish;  // empty: not yet
  bool first = false;  // of a stream: says whose message it is
};

// {"id":…,"object":…,"choices":[…],"usage":…}
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
// The same as an event, for the piece that comes most often: text alone. What
// all of them share is written once, since this runs on the engine's thread.
class TextPieces {
 public:
  TextPieces(const AnswerHead& head, bool include_usage);
  std::string event(int index, std::string_view text) const;

 private:
  std::string before_index_, before_text_, after_text_;
};
Json stream_usage(const AnswerHead& head, const Usage& usage);
// As server-sent events carry it.
std::string event_line(const Json& json);
std::string_view end_of_events();

// A token as text; bytes that are no text alone are written \xNN after
// "bytes:".
std::string token_text(const data::Tokenizer& tokenizer, std::int32_t id);

using Tokens = std::vector<infer::GeneratedToken>;

// The lists under "logprobs". The first token of a prompt has no log
// probability, which is null. ids adds the tokens' numbers.
Json chat_log_probs(
    const Tokens& tokens,
    const data::Tokenizer& tokenizer,
    bool ids
);
// A prompt that an answer begins with: its text, and which of its tokens stand
// in it.
struct PromptEcho {
  std::string text;
  std::size_t tokens = 0;      // of the prompt
  std::size_t hidden = 0;      // the first of them, put there by the tokenizer
  bool shows_special = false;  // special tokens stand there as they are spelled
};
// echo: where the tokens begin with the prompt's, else null. offset: characters
// of text before these tokens; grows by theirs.
Json completion_log_probs(
    const Tokens& tokens,
    const data::Tokenizer& tokenizer,
    bool ids,
    const PromptEcho* echo,
    std::size_t& offset
);

}  // namespace hearth::serve
