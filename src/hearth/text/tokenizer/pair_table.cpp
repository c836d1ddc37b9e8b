#include "hearth/text/tokenizer/pair_table.h"

#include <bit>

#include "hearth/base/error.h"

namespace hearth::text {

void PairTable::reserve(std::size_t merges) {
  const std::size_t size = std::bit_ceil(merges + merges / 2 + 8);
  if (size <= own_.size()) return;
  std::vector<Slot> old(size);
  old.swap(own_);
  slots_ = own_.data();
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
  for (const Slot& slot : old) {
    if (slot.key == kEmpty) continue;
    std::size_t i = start(slot.key);
    while (own_[i].key != kEmpty) i = (i + 1) & mask_;
    own_[i] = slot;
  }
}

void PairTable::set(std::int32_t left, std::int32_t right, Merge merge) {
  if (count_ + count_ / 2 + 8 >= own_.size()) reserve(own_.size());
  const std::uint64_t key = pack(left, right);
  std::size_t i = start(key);
  while (own_[i].key != kEmpty && own_[i].key != key) i = (i + 1) & mask_;
  count_ += own_[i].key == kEmpty;
  own_[i] = {key, merge};
}

PairTable PairTable::borrow(std::span<const Slot> slots, std::size_t id_limit) {
  PairTable out;
  out.own_ = {};
  out.slots_ = slots.data();
  out.mask_ = slots.size() - 1;
  out.shift_ = 64 - std::countr_zero(slots.size());
  bool fits = slots.size() >= 2 && std::has_single_bit(slots.size());
  for (const Slot& slot : slots) {
    const bool empty = slot.key == kEmpty;
    const auto merged = static_cast<std::uint32_t>(slot.merge.merged);
    fits &=
        empty | (((slot.key >> 32) < id_limit) &
                 ((slot.key & 0xFFFFFFFFu) < id_limit) & (merged < id_limit));
    out.count_ += !empty;
  }
  // An empty slot is what ends a lookup.
  if (!fits || out.count_ == slots.size()) {
    throw FormatError("a table of merges does not hold together");
  }
  return out;
}

}  // namespace hearth::text
