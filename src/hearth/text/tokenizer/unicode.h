#pragma once
// Character properties and normal forms, in the Unicode versions that Hugging
// Face's tokenizers use (tools/make_unicode_tables.py says which and how they
// were taken). No locale, no library.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::text::unicode {

// General categories, in the order of the table's low five bits.
enum Category : std::uint16_t {
  kCn,
  kCc,
  kCf,
  kCo,
  kCs,
  kLl,
  kLm,
  kLo,
  kLt,
  kLu,
  kMc,
  kMe,
  kMn,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPe,
  kPf,
  kPi,
  kPo,
  kPs,
  kSc,
  kSk,
  kSm,
  kSo,
  kZl,
  kZp,
  kZs
};
// The flags above them.
enum Flag : std::uint16_t {
  kWord = 1 << 5,         // \w in a Split pattern
  kRustWord = 1 << 6,     // \w of the Whitespace pre-tokenizer
  kNumeric = 1 << 7,      // of the Digits pre-tokenizer
  kPunctuation = 1 << 8,  // of the Punctuation pre-tokenizer
  kAccent = 1 << 9,       // dropped by StripAccents
  kCombines = 1 << 10,  // has a combining class or composes with what precedes
  kCanonicalChange = 1 << 11,
  kCompatibleChange = 1 << 12,
  kComposedChange = 1 << 13,  // NFC alone changes it
};

constexpr std::uint32_t kCodePoints = 0x110000;
// One value a code point: category | flags. Built at first use.
const std::uint16_t* table();
inline Category category(std::uint32_t c) {
  return static_cast<Category>(table()[c] & 31);
}
inline bool is_number(std::uint16_t value) {
  return (value & 31) >= kNd && (value & 31) <= kNo;
}
// White_Space: what \s and Rust's is_whitespace mean.
bool is_space(std::uint32_t c);

struct Range {
  std::uint32_t first, last;
};
// Sorted ranges of the code points of a category ("L", "Lu"), of the classes
// "word", "space", "digit", or of a script of the few that patterns name
// ("Han", "Hiragana", "Katakana", "Hangul"). Empty when unknown.
std::vector<Range> ranges_of(std::string_view name);
std::vector<Range> complement(const std::vector<Range>& sorted);

enum class Form { kNfc, kNfd, kNfkc, kNfkd };
// False when text is already so: out is then untouched.
bool normalize(std::string_view text, Form form, std::string& out);

// Character by character, without context.
void append_lower(std::string& out, std::uint32_t c);

}  // namespace hearth::text::unicode
