#pragma once
// Token strings and their ids, both ways, in two flat arrays and one text
// block: loading a hundred thousand of them costs few allocations, and the
// three can lie in a mapped file.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::text {

class Vocabulary {
 public:
  // Ids stay below this, so that a pair of them packs into 64 bits with room.
  static constexpr std::int64_t kMaxId = (std::int64_t{1} << 22) - 1;

  static constexpr std::uint32_t kAbsent = ~0u;
  struct Place {
    std::uint32_t begin = 0, size = kAbsent;
  };
  struct Slot {
    std::uint32_t tag = 0;
    std::int32_t id = -1;
  };
  struct Tables {
    std::string_view text;
    std::span<const Place> places;  // by id
    std::span<const Slot> slots;    // open addressing, a power of two
  };

  Vocabulary() = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
  // A vocabulary over tables of another one, which must outlive it; nothing
  // can be added to it. Throws FormatError unless they hold together: tokens
  // lie inside the text, slots name ids, every lookup ends.
  explicit Vocabulary(const Tables& tables);
  const Tables& tables() const { return tables_; }
  // Whether every token is; what is read from text always is.
  bool is_utf8() const;

  void reserve(std::size_t tokens, std::size_t bytes);
  // A token given twice keeps its last id, as a map would. id must be in
  // [0, kMaxId].
  void add(std::string_view token, std::int32_t id);

  // -1 when there is none.
  std::int32_t find(std::string_view token) const;
  bool contains(std::int32_t id) const {
    return id >= 0 && static_cast<std::size_t>(id) < tables_.places.size() &&
           tables_.places[static_cast<std::size_t>(id)].size != kAbsent;
  }
  // Empty when there is none.
  std::string_view token(std::int32_t id) const;
  // Number of distinct tokens, and one more than the highest id.
  std::size_t size() const { return count_; }
  std::size_t id_limit() const { return tables_.places.size(); }

 private:
  std::size_t slot_of(std::string_view token, std::uint32_t tag) const;
  void grow(std::size_t slots);
  void show() { tables_ = {text_, places_, slots_}; }

  std::string text_;
  std::vector<Place> places_;
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
  Tables tables_;  // what is looked in: the members above, or borrowed
};

// A fast hash of short byte strings; not for untrusted buckets that must not
// collide: the table above only slows down.
std::uint64_t hash_bytes(std::string_view bytes);

}  // namespace hearth::text
