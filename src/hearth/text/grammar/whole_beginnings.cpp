#include "hearth/text/grammar/whole_beginnings.h"

#include "hearth/text/grammar/compiled.h"
#include "hearth/text/grammar/reserve.h"

namespace hearth::text {
namespace grammar {
namespace {

// While one of these lives, what the stacks do counts.
class Charged {
 public:
  Charged(std::unique_ptr<Stacks>& stacks, TokenEffort& effort)
      : stacks_(stacks) {
    stacks_->charge(&effort.effort());
  }
  ~Charged() { stacks_->charge(nullptr); }
  Charged(const Charged&) = delete;
  Charged& operator=(const Charged&) = delete;

 private:
  std::unique_ptr<Stacks>& stacks_;  // they may be made anew meanwhile
};

}  // namespace

WholeBeginnings::WholeBeginnings(const Grammar& grammar)
    : stacks_(std::make_unique<Stacks>(grammar.automaton())) {
  TokenEffort effort(kReserve, nullptr);
  const Charged charged(stacks_, effort);
  set_ = effort.run([&] { return stacks_->start(); });
  whole_.push_back(stacks_->may_end(set_));
}

// Steps that were remembered are forgotten.
void WholeBeginnings::renew_stacks() {
  stacks_->spend(kRenewal);
  auto fresh = stacks_->fresh();
  set_ = stacks_->copy_into(set_, *fresh);
  stacks_ = std::move(fresh);
}

void WholeBeginnings::read(std::string_view text, Effort* given) {
  if (text.size() < whole_.size()) return;
  TokenEffort effort(kReserve, given);
  const Charged charged(stacks_, effort);
  effort.run([&] {
    if (stacks_->bytes() > kMaxStackBytes) renew_stacks();
    for (const char byte : text.substr(whole_.size() - 1)) {
      ++steps_;
      set_ = stacks_->step(set_, static_cast<std::uint8_t>(byte));
      whole_.push_back(stacks_->may_end(set_));
    }
  });
}

}  // namespace grammar

bool is_whole_text(const Grammar& grammar, std::string_view text) {
  return grammar::WholeBeginnings(grammar).is_whole(text);
}

}  // namespace hearth::text
