#pragma once
// Decodes ids as they come, and never hands out half a character: what the
// last ids only began stays back until the next ones, or finish(), complete it.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::text {

class StreamDecoder {
 public:
  explicit StreamDecoder(
      std::shared_ptr<const Tokenizer> tokenizer,
      bool skip_special = false
  );
  // What comes continues another text, so that nothing is stripped from it as
  // from a beginning. Before the first push.
  void continue_text();
  // The text that is certain now; may be empty.
  std::string push(std::int32_t id);
  // What stayed back, broken characters as U+FFFD. The next push starts a new
  // text.
  std::string finish();
  // The same without a character that was begun and not ended, for a text that
  // was cut.
  std::string finish_whole();

 private:
  std::string push_bytes(std::int32_t id);
  std::string push_window(std::int32_t id);

  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_, byte_level_;
  std::string pending_;  // byte-level: bytes not handed out
  // Otherwise: the last ids, and how much of their text was handed out. The
  // first `context_` ids of the window are only there so that the others decode
  // as they do inside a text; the first `anchor_` of these have some text by
  // themselves.
  std::vector<std::int32_t> window_;
  std::string shown_;
  std::size_t context_ = 0, anchor_ = 0;

  void keep_context();
};

}  // namespace hearth::text
