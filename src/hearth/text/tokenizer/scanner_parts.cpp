#include "hearth/text/tokenizer/scanner_impl.h"

namespace hearth::text::scan {
namespace {

using namespace unicode;

constexpr std::uint8_t of_category(std::uint16_t category) {
  switch (category) {
    case kLu:
    case kLt:
      return scan::kLetter | scan::kUpper;
    case kLl:
      return scan::kLetter | scan::kLower;
    case kLm:
    case kLo:
      return scan::kLetter | scan::kUpper | scan::kLower;
    case kMc:
    case kMe:
    case kMn:
      return scan::kOther | scan::kUpper | scan::kLower;
    case kNd:
    case kNl:
    case kNo:
      return scan::kNumber;
    case kZl:
    case kZp:
    case kZs:
      return scan::kSpace;
    default:
      break;
  }
  return category >= kPc && category <= kSo ? scan::kOther | scan::kSymbol
                                            : scan::kOther;
}

constexpr auto kByCategory = [] {
  std::array<std::uint8_t, 32> out{};
  for (std::uint16_t i = 0; i < 32; ++i) out[i] = of_category(i);
  return out;
}();

constexpr std::uint8_t of_ascii(int c) {
  if (c == '\r' || c == '\n') return scan::kSpace | scan::kNewline;
  if (c == ' ' || (c >= 9 && c <= 13)) return scan::kSpace;
  if (c >= '0' && c <= '9') return scan::kNumber;
  if (c >= 'A' && c <= 'Z') return scan::kLetter | scan::kUpper;
  if (c >= 'a' && c <= 'z') return scan::kLetter | scan::kLower;
  return c > ' ' && c < 127 ? scan::kOther | scan::kSymbol : scan::kOther;
}

}  // namespace

constinit const std::array<std::uint8_t, 256> kBytes = [] {
  std::array<std::uint8_t, 256> out{};
  for (int c = 0; c < 128; ++c) {
    out[static_cast<std::size_t>(c)] = of_ascii(c);
  }
  return out;
}();

std::uint8_t classify(std::uint32_t c, const std::uint16_t* table) {
  if (c == 0x85) return scan::kSpace;
  return kByCategory[table[c] & 31];
}

std::size_t contraction(const Text& text, std::size_t i, bool any_case) {
  if (!text.is(i, '\'') || i + 1 >= text.size) return i;
  const auto letter = [&](std::size_t at) -> char {
    if (at >= text.size) return 0;
    const char c = text.data[at];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char a = letter(i + 1), b = letter(i + 2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return i + 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') ||
      (a == 'l' && b == 'l')) {
    return i + 3;
  }
  // U+017F, the long s, is an s in another case.
  const std::string_view rest(text.data + i + 1, text.size - i - 1);
  if (any_case && rest.starts_with("\u017F")) return i + 3;
  return i;
}

std::size_t spaces(const Text& text, std::size_t i, bool newlines) {
  std::size_t end = i, last = i, after_newline = i;
  for (Char c = text.at(end); c.cls & kSpace; c = text.at(end)) {
    last = end;
    end += c.size;
    if (c.cls & kNewline) after_newline = end;
  }
  if (newlines && after_newline > i) return after_newline;
  // (?!\S): all of them at the end of the text, else all but the last, unless
  // there is only one.
  if (end == text.size || last == i) return end;
  return last;
}

}  // namespace hearth::text::scan
