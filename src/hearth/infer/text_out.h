#pragma once
// New token ids to text that may be shown: whole characters, up to a stop
// string.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/text/stop_text.h"
#include "hearth/text/tokenizer/stream_decoder.h"

namespace hearth::infer {

// How a text begins: by itself, or behind these tokens of another. goes_on:
// there is text before it, whatever they are, so that its first word keeps its
// space.
struct TextStart {
  bool goes_on = false;
  std::span<const std::int32_t> after;
};

class TextOut {
 public:
  // tokenizer may be null: then there is no text.
  TextOut(
      std::shared_ptr<const text::Tokenizer> tokenizer,
      const TextStart& start,
      const std::vector<std::string>& stops,
      text::StopText::MayEnd may_end = {}
  );
  std::string push(std::int32_t id) { return show(decode(id)); }
  // The two halves of push: what the token adds to the text, and what of that
  // may be shown.
  std::string decode(std::int32_t id);
  std::string show(std::string_view text) { return stop_.push(text); }
  // What may be shown before a token that is no text: it stays before it.
  std::string show_held() { return stop_.finish(); }
  // What was held back, when nothing more comes: whole characters only.
  std::string finish();
  bool stopped() const { return stop_.found(); }
  // All that was decoded and shown, or held back.
  std::string_view text() const { return stop_.text(); }

 private:
  std::optional<text::StreamDecoder> decoder_;
  text::StopText stop_;
};

// What is made continues the prompt, or begins afresh. A few last tokens of it
// are all that a beginning depends on, unless they are blanks alone.
TextStart text_start(
    const text::Tokenizer* tokenizer,
    std::span<const std::int32_t> prompt,
    bool continues_prompt
);

}  // namespace hearth::infer
