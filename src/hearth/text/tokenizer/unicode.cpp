#include "hearth/text/tokenizer/unicode.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "hearth/text/tokenizer/unicode_data_impl.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text::unicode {
namespace {

std::unique_ptr<std::uint16_t[]> expand() {
  auto values = std::make_unique<std::uint16_t[]>(kCodePoints);
  for (std::size_t i = 0; i < kRunsSize; i += 2) {
    const std::uint32_t end = i + 2 < kRunsSize ? kRuns[i + 2] : kCodePoints;
    const auto value = static_cast<std::uint16_t>(kRuns[i + 1]);
    if (value == 0) continue;
    std::fill(values.get() + kRuns[i], values.get() + end, value);
  }
  return values;
}

constexpr std::array<std::string_view, 30> kNames = {
    "Cn", "Cc", "Cf", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu",
    "Mc", "Me", "Mn", "Nd", "Nl", "No", "Pc", "Pd", "Pe", "Pf",
    "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"
};

template <class Test>
std::vector<Range> collect(Test test) {
  std::vector<Range> out;
  for (std::uint32_t c = 0; c < kCodePoints; ++c) {
    if (c == 0xD800) c = 0xE000;
    if (!test(c)) continue;
    if (!out.empty() && out.back().last + 1 == c) {
      out.back().last = c;
    } else {
      out.push_back({c, c});
    }
  }
  return out;
}

std::vector<Range> script(std::string_view name) {
  if (name == "Han") {
    return {{0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},
            {0x3005, 0x3005},   {0x3007, 0x3007},   {0x3021, 0x3029},
            {0x3038, 0x303B},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
            {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
            {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739},
            {0x2B740, 0x2B81D}, {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0},
            {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D}, {0x30000, 0x3134A},
            {0x31350, 0x323AF}};
  }
  if (name == "Hiragana") {
    return {{0x3041, 0x3096},   {0x309D, 0x309F},   {0x1B001, 0x1B11F},
            {0x1B132, 0x1B132}, {0x1B150, 0x1B152}, {0x1F200, 0x1F200}};
  }
  if (name == "Katakana") {
    return {{0x30A1, 0x30FA},   {0x30FD, 0x30FF},   {0x31F0, 0x31FF},
            {0x32D0, 0x32FE},   {0x3300, 0x3357},   {0xFF66, 0xFF6F},
            {0xFF71, 0xFF9D},   {0x1AFF0, 0x1AFF3}, {0x1AFF5, 0x1AFFB},
            {0x1AFFD, 0x1AFFE}, {0x1B000, 0x1B000}, {0x1B120, 0x1B122},
            {0x1B155, 0x1B155}, {0x1B164, 0x1B167}};
  }
  if (name == "Hangul") {
    return {{0x1100, 0x11FF}, {0x302E, 0x302F}, {0x3131, 0x318E},
            {0x3200, 0x321E}, {0x3260, 0x327E}, {0xA960, 0xA97C},
            {0xAC00, 0xD7A3}, {0xD7B0, 0xD7C6}, {0xD7CB, 0xD7FB},
            {0xFFA0, 0xFFBE}, {0xFFC2, 0xFFC7}, {0xFFCA, 0xFFCF},
            {0xFFD2, 0xFFD7}, {0xFFDA, 0xFFDC}};
  }
  return {};
}

}  // namespace

const std::uint16_t* table() {
  static const std::unique_ptr<std::uint16_t[]> values = expand();
  return values.get();
}

bool is_space(std::uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || (category(c) >= kZl && category(c) <= kZs);
}

std::vector<Range> ranges_of(std::string_view name) {
  const std::uint16_t* values = table();
  if (name == "word") {
    return collect([&](auto c) { return (values[c] & kWord) != 0; });
  }
  if (name == "space") return collect([](auto c) { return is_space(c); });
  if (name == "digit") {
    return collect([&](auto c) { return (values[c] & 31) == kNd; });
  }
  const auto matches = [&](std::uint32_t c) {
    const std::string_view own = kNames[values[c] & 31];
    return name.size() == 1 ? own[0] == name[0] : own == name;
  };
  if (name.empty() || name.size() > 2) return script(name);
  return collect(matches);
}

std::vector<Range> complement(const std::vector<Range>& sorted) {
  std::vector<Range> out;
  std::uint32_t next = 0;
  for (const Range& range : sorted) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next < kCodePoints) out.push_back({next, kCodePoints - 1});
  return out;
}

void append_lower(std::string& out, std::uint32_t c) {
  static const auto* map = [] {
    auto* m = new std::unordered_map<std::uint32_t, std::uint32_t>;
    for (std::size_t i = 0; i < kLowerSize; i += 2) {
      m->emplace(kLower[i], kLower[i + 1]);
    }
    return m;
  }();
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {
    out += "i\xCC\x87";
  } else {
    const auto it = map->find(c);
    append_utf8(out, it == map->end() ? c : it->second);
  }
}

}  // namespace hearth::text::unicode
