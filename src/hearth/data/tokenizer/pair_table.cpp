#include "hearth/data/tokenizer/pair_table.h"

#include <bit>

namespace hearth::data {

void PairTable::reserve(std::size_t merges) {
  const std::size_t size = std::bit_ceil(merges + merges / 2 + 8);
  if (size <= slots_.size()) return;
  std::vector<Slot> old(size);
  old.swap(slots_);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
  for (const Slot& slot : old) {
    if (slot.key == kEmpty) continue;
    std::size_t i = start(slot.key);
    while (slots_[i].key != kEmpty) i = (i + 1) & mask_;
    slots_[i] = slot;
  }
}

void PairTable::set(std::int32_t left, std::int32_t right, Merge merge) {
  if (count_ + count_ / 2 + 8 >= slots_.size()) reserve(slots_.size());
  const std::uint64_t key = pack(left, right);
  std::size_t i = start(key);
  while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & mask_;
  count_ += slots_[i].key == kEmpty;
  slots_[i] = {key, merge};
}

}  // namespace hearth::data
