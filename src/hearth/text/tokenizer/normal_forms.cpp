// NFC, NFD, NFKC, NFKD. Text is copied as it stands up to the first character
// that could change; only the stretch around such characters is decomposed,
// reordered and composed.
#include <algorithm>
#include <unordered_map>

#include "hearth/text/tokenizer/unicode.h"
#include "hearth/text/tokenizer/unicode_data_impl.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text::unicode {
namespace {

constexpr std::uint32_t kSBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161,
                        kTBase = 0x11A7, kLCount = 19, kVCount = 21,
                        kTCount = 28, kSCount = kLCount * kVCount * kTCount;

struct Tables {
  std::unordered_map<std::uint32_t, std::uint8_t> combining;
  // To the place of the length in the flat list.
  std::unordered_map<std::uint32_t, const std::uint32_t*> canonical, compatible;
  std::unordered_map<std::uint64_t, std::uint32_t> pairs;

  Tables() {
    for (std::size_t i = 0; i < kCombiningSize; ++i) {
      combining[kCombining[i] >> 8] =
          static_cast<std::uint8_t>(kCombining[i] & 0xFF);
    }
    fill(canonical, kCanonical, kCanonicalSize);
    fill(compatible, kCompatible, kCompatibleSize);
    for (std::size_t i = 0; i < kPairsSize; i += 3) {
      pairs[key(kPairs[i], kPairs[i + 1])] = kPairs[i + 2];
    }
  }
  static void fill(auto& map, const std::uint32_t* list, std::size_t size) {
    for (std::size_t i = 0; i < size; i += 2 + list[i + 1]) {
      map[list[i]] = list + i + 1;
    }
  }
  static std::uint64_t key(std::uint32_t a, std::uint32_t b) {
    return std::uint64_t{a} << 32 | b;
  }
  std::uint8_t combining_class(std::uint32_t c) const {
    const auto it = combining.find(c);
    return it == combining.end() ? 0 : it->second;
  }
};

const Tables& tables() {
  static const Tables* t = new Tables;
  return *t;
}

void decompose(std::uint32_t c, bool compatible, std::u32string& out) {
  if (c - kSBase < kSCount) {
    const std::uint32_t s = c - kSBase;
    out += static_cast<char32_t>(kLBase + s / (kVCount * kTCount));
    out += static_cast<char32_t>(kVBase + s / kTCount % kVCount);
    if (s % kTCount) out += static_cast<char32_t>(kTBase + s % kTCount);
    return;
  }
  const Tables& t = tables();
  const auto found = [&](const auto& map) {
    const auto it = map.find(c);
    if (it == map.end()) return false;
    const std::uint32_t* list = it->second;
    out.append(list + 1, list + 1 + list[0]);
    return true;
  };
  if (compatible && found(t.compatible)) return;
  if (!found(t.canonical)) out += static_cast<char32_t>(c);
}

// Marks after a starter, by combining class, those of one class in place.
void reorder(std::u32string& text) {
  const Tables& t = tables();
  for (std::size_t i = 0; i < text.size();) {
    if (!t.combining_class(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && t.combining_class(text[end])) ++end;
    std::stable_sort(
        text.begin() + static_cast<std::ptrdiff_t>(i),
        text.begin() + static_cast<std::ptrdiff_t>(end),
        [&](char32_t a, char32_t b) {
          return t.combining_class(a) < t.combining_class(b);
        }
    );
    i = end;
  }
}

std::uint32_t compose_pair(std::uint32_t a, std::uint32_t b) {
  if (a - kLBase < kLCount && b - kVBase < kVCount) {
    return kSBase + ((a - kLBase) * kVCount + b - kVBase) * kTCount;
  }
  if (a - kSBase < kSCount && (a - kSBase) % kTCount == 0 && b > kTBase &&
      b - kTBase < kTCount) {
    return a + b - kTBase;
  }
  const auto it = tables().pairs.find(Tables::key(a, b));
  return it == tables().pairs.end() ? 0 : it->second;
}

void compose(std::u32string& text) {
  const Tables& t = tables();
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t starter = kNone, kept = 0;
  int last_class = -1;  // of what was kept since the starter; -1 for nothing
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    const int own = t.combining_class(c);
    if (starter != kNone && last_class < own) {
      if (const std::uint32_t both = compose_pair(text[starter], c)) {
        text[starter] = static_cast<char32_t>(both);
        continue;
      }
    }
    if (own == 0) {
      starter = kept;
      last_class = -1;
    } else {
      last_class = own;
    }
    text[kept++] = c;
  }
  text.resize(kept);
}

std::uint16_t changing(Form form) {
  switch (form) {
    case Form::kNfc:
      return kCombines | kComposedChange;
    case Form::kNfd:
      return kCombines | kCanonicalChange;
    case Form::kNfkc:
      return kCombines | kComposedChange | kCompatibleChange;
    case Form::kNfkd:
      break;
  }
  return kCombines | kCanonicalChange | kCompatibleChange;
}

}  // namespace

bool normalize(std::string_view text, Form form, std::string& out) {
  const std::uint16_t mask = changing(form);
  const std::uint16_t* values = table();
  const bool compatible = form == Form::kNfkc || form == Form::kNfkd;
  std::size_t copied = 0, previous = 0;
  bool changed = false;
  std::u32string stretch;
  for (std::size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      i = skip_ascii(text, i);
      previous = i - 1;
      continue;
    }
    const CodePoint c = decode_utf8(text.data() + i);
    if (!(values[c.value] & mask)) {
      previous = i;
      i += c.size;
      continue;
    }
    // From the starter before to the next character that stands alone.
    if (!changed) out.clear();
    changed = true;
    out.append(text, copied, previous - copied);
    stretch.clear();
    std::size_t j = previous;
    while (j < text.size()) {
      const CodePoint d = decode_utf8(text.data() + j);
      if (j >= i && !(values[d.value] & mask)) break;
      decompose(d.value, compatible, stretch);
      j += d.size;
    }
    reorder(stretch);
    if (form == Form::kNfc || form == Form::kNfkc) compose(stretch);
    for (char32_t d : stretch) append_utf8(out, d);
    copied = previous = i = j;
  }
  if (changed) out.append(text, copied, text.size() - copied);
  return changed;
}

}  // namespace hearth::text::unicode
