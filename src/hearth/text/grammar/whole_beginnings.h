#pragma once
// Which beginnings of a text are whole texts of a grammar, while the text
// grows: one place in the grammar goes along with it, so that no byte is read
// twice, and what was found of each beginning is kept.
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/grammar/stacks.h"

namespace hearth::text::grammar {

// Not for several threads at once.
class WholeBeginnings {
 public:
  // The grammar must outlive it.
  explicit WholeBeginnings(const Grammar& grammar);

  // Reads on: `text` is all of it so far, or any beginning of it. Throws
  // UsageError where the grammar is too ambiguous, EffortError where the effort
  // does not suffice; then the call goes on where it was when it is made again.
  void read(std::string_view text, Effort* effort = nullptr);
  bool is_whole(std::string_view text) {
    read(text);
    return whole_[text.size()];
  }
  // Bytes that were taken through the grammar.
  std::size_t steps() const { return steps_; }
  std::size_t bytes() const { return stacks_->bytes(); }

 private:
  std::unique_ptr<Stacks> stacks_;
  SetId set_ = Stacks::kDead;
  std::vector<bool> whole_;  // by the beginning's length
  std::size_t steps_ = 0;

  void renew_stacks();
};

}  // namespace hearth::text::grammar
