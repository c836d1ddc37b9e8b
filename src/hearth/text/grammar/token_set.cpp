#include "hearth/text/grammar/token_set.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace hearth::text::grammar {

void TokenSet::add_all(const TokenSet& other) {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

void TokenSet::add_all_but(std::span<const std::int32_t> ids) {
  std::size_t next = 0;
  for (std::size_t word = 0; word < words_.size(); ++word) {
    const std::size_t past = (word + 1) * 64;
    std::uint64_t all = ~std::uint64_t{0};
    if (past > size_) all >>= past - size_;
    for (; next < ids.size() && static_cast<std::size_t>(ids[next]) < past;
         ++next) {
      all &= ~bit(ids[next]);
    }
    words_[word] |= all;
  }
}

bool TokenSet::empty() const {
  return std::all_of(words_.begin(), words_.end(), [](auto word) {
    return word == 0;
  });
}

std::size_t TokenSet::count() const {
  std::size_t sum = 0;
  for (const std::uint64_t word : words_) {
    sum += static_cast<std::size_t>(std::popcount(word));
  }
  return sum;
}

std::vector<std::int32_t> TokenSet::ids() const {
  std::vector<std::int32_t> found;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    for (std::uint64_t left = words_[i]; left != 0; left &= left - 1) {
      found.push_back(
          static_cast<std::int32_t>(i * 64) +
          static_cast<std::int32_t>(std::countr_zero(left))
      );
    }
  }
  return found;
}

std::vector<std::int32_t> TokenSet::other_ids() const {
  TokenSet others(size_);
  others.add_all_but(ids());
  return others.ids();
}

void TokenSet::mask(std::span<float> logits) const {
  constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const std::size_t first = i * 64;
    if (first >= logits.size()) return;
    const std::size_t count = std::min<std::size_t>(64, logits.size() - first);
    float* const at = logits.data() + first;
    if (words_[i] == 0) {
      std::fill(at, at + count, kMinusInf);
      continue;
    }
    std::uint64_t left = ~words_[i];
    if (count < 64) left &= (std::uint64_t{1} << count) - 1;
    for (; left != 0; left &= left - 1) at[std::countr_zero(left)] = kMinusInf;
  }
  if (logits.size() > size_) {
    std::fill(
        logits.begin() + static_cast<std::ptrdiff_t>(size_), logits.end(),
        kMinusInf
    );
  }
}

}  // namespace hearth::text::grammar
