#include "hearth/text/tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {

std::uint64_t hash_bytes(std::string_view bytes) {
  constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15u;
  std::uint64_t hash = bytes.size() * kMix;
  const char* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    hash = (hash ^ word) * kMix;
    hash ^= hash >> 29;
  }
  std::uint64_t word = 0;
  if (left) std::memcpy(&word, p, left);
  hash = (hash ^ word) * kMix;
  hash ^= hash >> 32;
  return hash * kMix;
}

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  text_.reserve(bytes);
  places_.reserve(tokens);
  grow(std::bit_ceil(tokens * 2 + 16));
  show();
}

// Branch-free over megabytes: this is most of what loading a cache costs.
Vocabulary::Vocabulary(const Tables& tables) : tables_(tables) {
  const std::size_t limit = tables.places.size();
  bool fits = std::has_single_bit(tables.slots.size()) &&
              limit <= static_cast<std::size_t>(kMaxId) + 1;
  for (const Place& place : tables.places) {
    const bool inside =
        std::uint64_t{place.begin} + place.size <= tables.text.size();
    fits &= inside | (place.size == kAbsent);
  }
  for (const Slot& slot : tables.slots) {
    const auto id = static_cast<std::uint32_t>(slot.id);
    fits &= (slot.id < 0) | (id < limit);
    count_ += slot.id >= 0;
  }
  // An empty slot is what ends a lookup.
  if (!fits || count_ == tables.slots.size()) {
    throw FormatError("a vocabulary's tables do not hold together");
  }
}

bool Vocabulary::is_utf8() const {
  for (std::size_t id = 0; id < id_limit(); ++id) {
    if (!is_valid_utf8(token(static_cast<std::int32_t>(id)))) return false;
  }
  return true;
}

std::size_t Vocabulary::slot_of(
    std::string_view token,
    std::uint32_t tag
) const {
  const auto slots = tables_.slots;
  const std::size_t mask = slots.size() - 1;
  for (std::size_t i = tag & mask;; i = (i + 1) & mask) {
    if (slots[i].id < 0) return i;
    if (slots[i].tag == tag && this->token(slots[i].id) == token) return i;
  }
}

void Vocabulary::grow(std::size_t slots) {
  if (slots <= slots_.size()) return;
  std::vector<Slot> old(slots);
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    std::size_t i = slot.tag & mask;
    while (slots_[i].id >= 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

void Vocabulary::add(std::string_view token, std::int32_t id) {
  if (id < 0 || id > kMaxId || token.size() > (1u << 20) ||
      text_.size() + token.size() >= kAbsent) {
    throw FormatError("[data.Vocabulary] token or id out of bounds");
  }
  if (slots_.size() < (count_ + 1) * 2) {
    grow(std::max<std::size_t>(64, slots_.size() * 2));
    show();
  }
  const auto tag = static_cast<std::uint32_t>(hash_bytes(token) >> 32);
  Slot& slot = slots_[slot_of(token, tag)];
  const auto index = static_cast<std::size_t>(id);
  if (index >= places_.size()) places_.resize(index + 1);
  count_ += slot.id < 0;
  slot = {tag, id};
  places_[index] = {
      static_cast<std::uint32_t>(text_.size()),
      static_cast<std::uint32_t>(token.size())
  };
  text_ += token;
  show();
}

std::int32_t Vocabulary::find(std::string_view token) const {
  if (tables_.slots.empty()) return -1;
  const auto tag = static_cast<std::uint32_t>(hash_bytes(token) >> 32);
  return tables_.slots[slot_of(token, tag)].id;
}

std::string_view Vocabulary::token(std::int32_t id) const {
  if (!contains(id)) return {};
  const Place place = tables_.places[static_cast<std::size_t>(id)];
  return {tables_.text.data() + place.begin, place.size};
}

}  // namespace hearth::text
