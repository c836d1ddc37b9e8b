#include "hearth/infer/text_out.h"

#include <algorithm>

namespace hearth::infer {

TextOut::TextOut(
    std::shared_ptr<const text::Tokenizer> tokenizer,
    const TextStart& start,
    const std::vector<std::string>& stops,
    text::StopText::MayEnd may_end
)
    : stop_(stops, std::move(may_end)) {
  if (!tokenizer) return;
  decoder_.emplace(std::move(tokenizer), true);
  if (start.goes_on) decoder_->continue_text();
  for (const std::int32_t id : start.after) decoder_->push(id);
}

std::string TextOut::decode(std::int32_t id) {
  return decoder_ ? decoder_->push(id) : std::string();
}

std::string TextOut::finish() {
  if (!decoder_) return {};
  std::string out = stop_.push(decoder_->finish_whole());
  return out + stop_.finish();
}

TextStart text_start(
    const text::Tokenizer* tokenizer,
    std::span<const std::int32_t> prompt,
    bool continues_prompt
) {
  constexpr std::size_t kTokens = 8;
  if (!continues_prompt || tokenizer == nullptr) return {};
  TextStart out;
  out.after = prompt.last(std::min(prompt.size(), kTokens));
  out.goes_on = tokenizer->decode(out.after, true).empty() &&
                !tokenizer->decode(prompt, true).empty();
  return out;
}

}  // namespace hearth::infer
