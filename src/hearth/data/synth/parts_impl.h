#pragma once
// What the generators share: choosing, filling in patterns, writing JSON.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hearth/base/random.h"

namespace hearth::data::synth {

using Words = std::span<const std::string_view>;

class Dice {
 public:
  explicit Dice(RandomKey key) : stream_(key) {}
  // In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(
                     stream_.below(static_cast<std::uint64_t>(high - low + 1))
                 );
  }
  bool one_in(std::uint64_t n) { return stream_.below(n) == 0; }
  std::string_view pick(Words words) {
    return words[stream_.below(words.size())];
  }
  template <class T, std::size_t N>
  const T& pick(const T (&items)[N]) {
    return items[stream_.below(N)];
  }
  template <class T, std::size_t N>
  const T& pick(const std::array<T, N>& items) {
    return items[stream_.below(N)];
  }
  std::size_t below(std::size_t n) { return stream_.below(n); }

 private:
  RandomStream stream_;
};

// Values of the one-letter slots of a pattern.
class Slots {
 public:
  void set(char slot, std::string_view text) {
    texts_[static_cast<unsigned char>(slot) & 127] = text;
  }
  std::string_view operator[](char slot) const {
    return texts_[static_cast<unsigned char>(slot) & 127];
  }

 private:
  std::array<std::string, 128> texts_;
};

// Appends a pattern: $x is slot x, $^x starts with a capital, $&x has its
// article in front ("a", or "an" before a vowel), $^&x both.
void fill(std::string& out, std::string_view pattern, const Slots& slots);
std::string filled(std::string_view pattern, const Slots& slots);

// A member of an object, as JSON.
void append_json_field(
    std::string& out,
    std::string_view name,
    std::string_view text
);

// The generators: one record without its newline.
void append_story(RandomKey key, std::string& out);
void append_arith(RandomKey key, std::string& out);
void append_tools(RandomKey key, std::string& out);

}  // namespace hearth::data::synth
