// Unicode classes and case, over the generated tables.
#include <algorithm>
#include <span>

#include "hearth/text/template/text.h"
#include "hearth/text/template/text_tables.h"

namespace hearth::text::jinja {
namespace {

const CaseRun* find_run(const CaseRun* runs, std::size_t count, char32_t c) {
  const CaseRun* end = runs + count;
  const CaseRun* run =
      std::upper_bound(runs, end, c, [](char32_t value, const CaseRun& r) {
        return value < r.first;
      });
  if (run == runs) return nullptr;
  --run;
  const bool inside = c <= run->last && (c - run->first) % run->stride == 0;
  return inside ? run : nullptr;
}

struct CaseMap {
  const CaseRun* runs;
  std::size_t run_count;
  const CaseSpecial* special;
  std::size_t special_count;
  const CaseMap* base;  // consulted where this map is silent
};

const CaseMap kLowerMap{
    kToLower, kToLowerCount, kToLowerSpecial, kToLowerSpecialCount, nullptr
};
const CaseMap kUpperMap{
    kToUpper, kToUpperCount, kToUpperSpecial, kToUpperSpecialCount, nullptr
};
const CaseMap kTitleMap{
    kToTitle, kToTitleCount, kToTitleSpecial, kToTitleSpecialCount, &kUpperMap
};
const CaseMap kFoldMap{
    kToFold, kToFoldCount, kToFoldSpecial, kToFoldSpecialCount, &kLowerMap
};

void append_mapped(std::string& out, char32_t c, const CaseMap* map) {
  for (; map != nullptr; map = map->base) {
    if (const CaseRun* run = find_run(map->runs, map->run_count, c)) {
      return append_code_point(
          out, static_cast<char32_t>(static_cast<std::int64_t>(c) + run->delta)
      );
    }
    for (const CaseSpecial& s : std::span(map->special, map->special_count)) {
      if (s.from != c) continue;
      for (const std::uint32_t to : s.to) {
        if (to != 0) append_code_point(out, to);
      }
      return;
    }
  }
  append_code_point(out, c);
}

bool is_cased(char32_t c) {
  return is_upper(c) || is_lower(c) || is_title(c);
}

// Marks that do not end a word for the final-sigma rule. Python uses the
// Case_Ignorable property; these are its members that occur in text.
bool is_case_ignorable(char32_t c) {
  return c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' ||
         c == 0xA8 || c == 0xAD || c == 0xAF || c == 0xB4 || c == 0xB7 ||
         c == 0xB8 || (c >= 0x2B0 && c <= 0x36F) || c == 0x2018 ||
         c == 0x2019 || c == 0x200D;
}

// A sigma is final after a cased letter and before none.
bool final_sigma(std::u32string_view text, std::size_t i) {
  std::size_t before = i;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = i + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_lower(std::string& out, std::u32string_view text, std::size_t i) {
  if (text[i] == 0x3A3) {
    append_code_point(out, final_sigma(text, i) ? 0x3C2 : 0x3C3);
  } else {
    append_mapped(out, text[i], &kLowerMap);
  }
}

std::u32string decode(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    out += next_code_point(text, at);
  }
  return out;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80;
  });
}

std::string ascii_shift(std::string_view text, char first, int delta) {
  std::string out(text);
  for (char& c : out) {
    if (c >= first && c < first + 26) c = static_cast<char>(c + delta);
  }
  return out;
}

std::string map_all(std::string_view text, const CaseMap& map) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    append_mapped(out, next_code_point(text, at), &map);
  }
  return out;
}

}  // namespace

#define HEARTH_CLASS(function, table)                   \
  bool function(char32_t c) {                           \
    return find_run(table, table##Count, c) != nullptr; \
  }
HEARTH_CLASS(is_alpha, kAlpha)
HEARTH_CLASS(is_decimal, kDecimal)
HEARTH_CLASS(is_digit, kDigit)
HEARTH_CLASS(is_numeric, kNumeric)
HEARTH_CLASS(is_upper, kUpper)
HEARTH_CLASS(is_lower, kLower)
HEARTH_CLASS(is_title, kTitle)
#undef HEARTH_CLASS

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  return find_run(kSpace, kSpaceCount, c) != nullptr;
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 32 && c < 127;
  return find_run(kUnprintable, kUnprintableCount, c) == nullptr;
}

std::string to_lower(std::string_view text) {
  if (is_ascii(text)) return ascii_shift(text, 'A', 32);
  const std::u32string wide = decode(text);
  std::string out;
  for (std::size_t i = 0; i < wide.size(); ++i) append_lower(out, wide, i);
  return out;
}

std::string to_upper(std::string_view text) {
  if (is_ascii(text)) return ascii_shift(text, 'a', -32);
  return map_all(text, kUpperMap);
}

std::string case_fold(std::string_view text) {
  return map_all(text, kFoldMap);
}

std::string to_title(std::string_view text) {
  const std::u32string wide = decode(text);
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (inside) {
      append_lower(out, wide, i);
    } else {
      append_mapped(out, wide[i], &kTitleMap);
    }
    inside = is_cased(wide[i]);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  const std::u32string wide = decode(text);
  std::string out;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (i == 0) {
      append_mapped(out, wide[i], &kTitleMap);
    } else {
      append_lower(out, wide, i);
    }
  }
  return out;
}

std::string swap_case(std::string_view text) {
  const std::u32string wide = decode(text);
  std::string out;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (is_upper(wide[i])) {
      append_lower(out, wide, i);
    } else if (is_lower(wide[i])) {
      append_mapped(out, wide[i], &kUpperMap);
    } else {
      append_code_point(out, wide[i]);
    }
  }
  return out;
}

}  // namespace hearth::text::jinja
