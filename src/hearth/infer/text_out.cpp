#include "hearth/infer/text_out.h"

#include <algorithm>

namespace hearth::infer {

TextOut::TextOut(
    std::shared_ptr<const data::Tokenizer> tokenizer,
    std::span<const std::int32_t> context,
    const std::vector<std::string>& stops,
    StopText::MayEnd may_end
)
    : stop_(stops, std::move(may_end)) {
  if (!tokenizer) return;
  decoder_.emplace(std::move(tokenizer), true);
  for (const std::int32_t id : context) decoder_->push(id);
}

std::string TextOut::push(std::int32_t id) {
  return decoder_ ? stop_.push(decoder_->push(id)) : std::string();
}

std::string TextOut::finish() {
  if (!decoder_) return {};
  std::string out = stop_.push(decoder_->finish_whole());
  return out + stop_.finish();
}

std::span<const std::int32_t> text_context(
    std::span<const std::int32_t> prompt,
    bool continues_prompt
) {
  constexpr std::size_t kTokens = 8;
  if (!continues_prompt) return {};
  return prompt.last(std::min(prompt.size(), kTokens));
}

}  // namespace hearth::infer
