#pragma once
// (left id, right id) -> (rank, merged id): the merges of a BPE model as one
// open-addressed array, 16 bytes a merge.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth::text {

class PairTable {
 public:
  static constexpr std::uint32_t kNoRank = ~0u;
  struct Merge {
    std::uint32_t rank = kNoRank;
    std::int32_t merged = -1;
  };

  struct Slot {
    std::uint64_t key = ~std::uint64_t{0};
    Merge merge;
  };

  PairTable() { reserve(1); }
  PairTable(PairTable&&) = default;
  PairTable& operator=(PairTable&&) = default;
  // A table over slots of another one, which must outlive it; nothing can be
  // set in it. Throws FormatError unless every lookup ends and every id is
  // below id_limit.
  static PairTable borrow(std::span<const Slot> slots, std::size_t id_limit);
  void reserve(std::size_t merges);
  // The last of two merges of one pair stands.
  void set(std::int32_t left, std::int32_t right, Merge merge);
  // rank is kNoRank when the pair does not merge.
  Merge find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = pack(left, right);
    for (std::size_t i = start(key);; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.key == key) return slot.merge;
      if (slot.key == kEmpty) return {};
    }
  }
  std::size_t size() const { return count_; }
  std::span<const Slot> slots() const { return {slots_, mask_ + 1}; }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static std::uint64_t pack(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t start(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
  }

  std::vector<Slot> own_;  // empty when the slots are borrowed
  const Slot* slots_ = nullptr;
  std::size_t mask_ = 0, count_ = 0;
  int shift_ = 63;
};

}  // namespace hearth::text
