#include "hearth/text/tokenizer/stream_decoder.h"

#include <span>

#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {
constexpr std::string_view kBroken = "\uFFFD";
// A character has at most four bytes, so more ids than this cannot belong to
// one that is still unfinished.
constexpr std::size_t kMaxHeld = 4;

bool is_ascii_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z');
}
}  // namespace

StreamDecoder::StreamDecoder(
    std::shared_ptr<const Tokenizer> tokenizer,
    bool skip_special
)
    : tokenizer_(std::move(tokenizer)),
      skip_special_(skip_special),
      byte_level_(tokenizer_->decodes_bytes()) {}

std::string StreamDecoder::push(std::int32_t id) {
  return byte_level_ ? push_bytes(id) : push_window(id);
}

std::string StreamDecoder::push_bytes(std::int32_t id) {
  pending_ += tokenizer_->decoded_bytes(id, skip_special_);
  const std::size_t held = unfinished_utf8_suffix(pending_);
  const std::string_view certain(pending_.data(), pending_.size() - held);
  std::string out = repair_utf8(certain);
  pending_.erase(0, certain.size());
  return out;
}

std::string StreamDecoder::push_window(std::int32_t id) {
  window_.push_back(id);
  std::string text = tokenizer_->decode(window_, skip_special_);
  const bool open =
      text.ends_with(kBroken) && window_.size() - context_ <= kMaxHeld;
  if (open) return {};
  // Bytes that turned out broken can change what was shown; that cannot be
  // taken back.
  std::string out;
  if (text.starts_with(shown_)) {
    out = text.substr(shown_.size());
  } else if (text.ends_with(kBroken)) {
    out = kBroken;
  }
  keep_context();
  return out;
}

// What was new becomes the context of what comes. Blanks and special tokens
// alone would decode to nothing, and more blanks after them too, as at a text's
// beginning: before those stays the last that had text, or all there was.
void StreamDecoder::keep_context() {
  const auto place = [&](std::size_t at) {
    return window_.begin() + static_cast<std::ptrdiff_t>(at);
  };
  const std::span fresh = std::span(window_).subspan(context_);
  if (!tokenizer_->decode(fresh, skip_special_).empty()) {
    window_.erase(window_.begin(), place(context_));
    anchor_ = window_.size();
  } else if (anchor_ > 0) {
    window_.erase(place(anchor_), place(context_));
  }
  context_ = window_.size();
  shown_ = tokenizer_->decode(window_, skip_special_);
}

// Behind a token of a letter or digit every other stands inside a text.
void StreamDecoder::continue_text() {
  if (byte_level_) return;
  const auto limit = static_cast<std::int32_t>(tokenizer_->id_limit());
  for (std::int32_t id = 0; id < limit; ++id) {
    const std::string text = tokenizer_->decode({&id, 1}, skip_special_);
    if (text.size() != 1 || !is_ascii_word(text[0])) continue;
    push_window(id);
    return;
  }
}

std::string StreamDecoder::finish_whole() {
  std::string held = pending_;
  for (std::size_t i = context_; i < window_.size(); ++i) {
    held += tokenizer_->token_bytes(window_[i]);
  }
  const std::size_t begun = unfinished_utf8_suffix(held);
  std::string out = finish();
  // One U+FFFD stands for each of its bytes, or for all of them.
  for (std::size_t i = 0; i < begun && out.ends_with(kBroken); ++i) {
    out.resize(out.size() - kBroken.size());
  }
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  if (byte_level_) {
    out = repair_utf8(pending_);
  } else if (window_.size() > context_) {
    const std::string text = tokenizer_->decode(window_, skip_special_);
    if (text.starts_with(shown_)) out = text.substr(shown_.size());
  }
  pending_.clear();
  window_.clear();
  shown_.clear();
  context_ = anchor_ = 0;
  return out;
}

}  // namespace hearth::text
