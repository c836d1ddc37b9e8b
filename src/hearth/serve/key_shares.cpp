#include "hearth/serve/key_shares.h"

#include <fmt/format.h>

#include "hearth/serve/api/api_error.h"

namespace hearth::serve {

KeyShares::KeyShares(std::size_t most) : state_(std::make_shared<State>()) {
  state_->most = most;
}

KeyShares::SharePtr KeyShares::take(
    const std::string& owner,
    std::size_t texts
) {
  auto share = std::make_shared<Share>(state_, owner);
  share->resize(texts);
  return share;
}

void KeyShares::resize(Share& share, std::size_t texts) {
  share.resize(texts);
}

void KeyShares::Share::resize(std::size_t texts) {
  const std::lock_guard lock(state_->mutex);
  std::size_t& taken = state_->taken[owner_];
  const std::size_t others = taken - texts_;
  const std::size_t most = state_->most;
  const bool too_many = most > 0 && texts > texts_ && others + texts > most;
  if (!too_many) taken = others + texts, texts_ = texts;
  if (taken == 0) state_->taken.erase(owner_);
  if (!too_many) return;
  throw ApiError(
      texts > most ? 400 : 429,
      fmt::format(
          "one key may have {} texts under way at the same time (--per-key): "
          "{} are, and this asks for {}",
          most, others, texts
      ),
      {}, "key_limit"
  );
}

KeyShares::Share::~Share() {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->taken.find(owner_);
  if (at == state_->taken.end()) return;
  at->second -= texts_;
  if (at->second == 0) state_->taken.erase(at);
}

}  // namespace hearth::serve
