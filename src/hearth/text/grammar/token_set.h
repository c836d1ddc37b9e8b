#pragma once
// A set of token ids, one bit each.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth::text::grammar {

class TokenSet {
 public:
  explicit TokenSet(std::size_t size) : size_(size), words_((size + 63) / 64) {}

  void add(std::int32_t id) {
    words_[static_cast<std::size_t>(id) / 64] |= bit(id);
  }
  void remove(std::int32_t id) {
    words_[static_cast<std::size_t>(id) / 64] &= ~bit(id);
  }
  bool contains(std::int32_t id) const {
    return (words_[static_cast<std::size_t>(id) / 64] & bit(id)) != 0;
  }
  void add_all(const TokenSet& other);
  // All ids of the vocabulary but these, which are sorted.
  void add_all_but(std::span<const std::int32_t> ids);
  bool empty() const;
  std::size_t size() const { return size_; }
  std::size_t count() const;
  std::vector<std::int32_t> ids() const;
  std::vector<std::int32_t> other_ids() const;

  // -inf for every id that is not in the set, and for those past its size.
  void mask(std::span<float> logits) const;

 private:
  static std::uint64_t bit(std::int32_t id) {
    return std::uint64_t{1} << (static_cast<std::size_t>(id) % 64);
  }
  std::size_t size_;
  std::vector<std::uint64_t> words_;
};

}  // namespace hearth::text::grammar
