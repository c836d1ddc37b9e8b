#include "hearth/text/grammar/held_text.h"

#include <algorithm>
#include <utility>

namespace hearth::text {

HeldText::HeldText(
    std::shared_ptr<const Grammar> grammar,
    std::shared_ptr<const GrammarVocabulary> vocabulary,
    Options options,
    Effort* effort
)
    : grammar_(std::move(grammar)),
      state_(grammar_, std::move(vocabulary), effort),
      after_(std::move(options.after)),
      held_(after_.empty()) {
  if (options.has_stops) whole_.emplace(*grammar_);
}

// A token may hold the end of the mark and what follows it.
void HeldText::look_for_mark(std::string_view spelled) {
  last_free_ += spelled;
  const auto at = last_free_.find(after_);
  if (at == std::string::npos) {
    const auto keep = std::min(last_free_.size(), after_.size() - 1);
    last_free_.erase(0, last_free_.size() - keep);
    return;
  }
  behind_mark_ = last_free_.substr(at + after_.size());
  held_ = true;
  begins_ = text_.size() - std::min(text_.size(), behind_mark_.size());
}

void HeldText::push(
    std::int32_t id,
    std::string_view spelled,
    std::string_view shown
) {
  if (whole_) text_ += shown;
  if (held_) {
    token_ = id;
  } else {
    look_for_mark(spelled);
  }
}

void HeldText::follow(Effort* effort) {
  if (token_) state_.accept(*token_, effort);
  token_.reset();
  if (!behind_mark_.empty()) state_.accept_bytes(behind_mark_, effort);
  behind_mark_.clear();
  // With each token, so that no stop string has a long text to read at once.
  if (whole_ && held_ && text_.size() >= begins_) {
    whole_->read(std::string_view(text_).substr(begins_), effort);
  }
}

void HeldText::prepare(Effort* effort) {
  if (held_) state_.prepare(effort);
}

bool HeldText::may_end(std::string_view text) {
  if (!held_ || !whole_ || text.size() < begins_) return true;
  return whole_->is_whole(text.substr(begins_));
}

std::size_t HeldText::bytes() const {
  return state_.bytes() + (whole_ ? whole_->bytes() : 0);
}

}  // namespace hearth::text
