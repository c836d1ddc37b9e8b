#pragma once
// New token ids to text that may be shown: whole characters, up to a stop
// string.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hearth/data/tokenizer/stream_decoder.h"
#include "hearth/infer/stop_text.h"

namespace hearth::infer {

class TextOut {
 public:
  // tokenizer may be null: then there is no text. The text continues
  // `context`, so that its first word keeps its space.
  TextOut(
      std::shared_ptr<const data::Tokenizer> tokenizer,
      std::span<const std::int32_t> context,
      const std::vector<std::string>& stops,
      StopText::MayEnd may_end = {}
  );
  std::string push(std::int32_t id);
  // What was held back, when nothing more comes: whole characters only.
  std::string finish();
  bool stopped() const { return stop_.found(); }

 private:
  std::optional<data::StreamDecoder> decoder_;
  StopText stop_;
};

// The few last tokens of a prompt are all that a word's beginning depends on.
std::span<const std::int32_t> text_context(
    std::span<const std::int32_t> prompt,
    bool continues_prompt
);

}  // namespace hearth::infer
