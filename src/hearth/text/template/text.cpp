#include "hearth/text/template/text.h"

#include <algorithm>

namespace hearth::text::jinja {
namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Length of a sequence by its first byte; 0 for a byte that starts none.
int sequence_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

// The code point before `end`, and where it starts.
char32_t previous_code_point(std::string_view text, std::size_t& end) {
  do {
    --end;
  } while (end > 0 && is_continuation(text[end]));
  std::size_t at = end;
  return next_code_point(text, at);
}

template <class Drop>
std::string_view strip_if(std::string_view text, Side side, Drop drop) {
  if (side != Side::kRight) {
    std::size_t at = 0;
    while (at < text.size()) {
      std::size_t next = at;
      if (!drop(next_code_point(text, next))) break;
      at = next;
    }
    text.remove_prefix(at);
  }
  if (side != Side::kLeft) {
    std::size_t end = text.size();
    while (end > 0) {
      std::size_t start = end;
      if (!drop(previous_code_point(text, start))) break;
      end = start;
    }
    text = text.substr(0, end);
  }
  return text;
}

}  // namespace

bool valid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int n = sequence_length(first);
    if (n == 0 || i + n > text.size()) return false;
    for (int k = 1; k < n; ++k) {
      if (!is_continuation(text[i + k])) return false;
    }
    if (n > 2) {
      std::size_t at = i;
      const char32_t c = next_code_point(text, at);
      const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
      if (c < (n == 3 ? 0x800u : 0x10000u) || c > 0x10FFFF || surrogate) {
        return false;
      }
    }
    i += n;
  }
  return true;
}

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const int n = std::max(1, sequence_length(first));
  static constexpr unsigned char kMask[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t c = first & kMask[n];
  const std::size_t end = std::min(at + n, text.size());
  for (std::size_t i = at + 1; i < end; ++i) {
    c = (c << 6) | (static_cast<unsigned char>(text[i]) & 0x3F);
  }
  at = end;
  return c;
}

void append_code_point(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      out += static_cast<char>(0xE0 | (c >> 12));
    } else {
      out += static_cast<char>(0xF0 | (c >> 18));
      out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    }
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
  }
  out += static_cast<char>(0x80 | (c & 0x3F));
}

std::size_t code_point_count(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(
                           text.begin(), text.end(), is_continuation
                       ));
}

std::size_t byte_offset(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (!is_continuation(text[at]) && index-- == 0) break;
    ++at;
  }
  return at;
}

std::vector<std::string_view> code_points(std::string_view text) {
  std::vector<std::string_view> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    next_code_point(text, at);
    found.push_back(text.substr(start, at - start));
  }
  return found;
}

std::string_view strip(std::string_view text, Side side) {
  return strip_if(text, side, is_space);
}

std::string_view strip(
    std::string_view text,
    Side side,
    std::string_view chars
) {
  std::u32string set;
  for (std::size_t at = 0; at < chars.size();) {
    set += next_code_point(chars, at);
  }
  std::sort(set.begin(), set.end());
  return strip_if(text, side, [&](char32_t c) {
    return std::binary_search(set.begin(), set.end(), c);
  });
}

std::vector<std::string_view> split_spaces(
    std::string_view text,
    std::int64_t limit,
    bool from_right
) {
  std::vector<std::string_view> parts;
  const Side near = from_right ? Side::kRight : Side::kLeft;
  text = strip(text, near);
  while (!text.empty()) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) >= limit) {
      parts.push_back(text);
      break;
    }
    std::size_t at = from_right ? text.size() : 0;
    const std::size_t end = from_right ? 0 : text.size();
    while (at != end) {
      std::size_t next = at;
      const char32_t c = from_right ? previous_code_point(text, next)
                                    : next_code_point(text, next);
      if (is_space(c)) break;
      at = next;
    }
    parts.push_back(from_right ? text.substr(at) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(at);
    text = strip(text, near);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_at(
    std::string_view text,
    std::string_view separator,
    std::int64_t limit,
    bool from_right
) {
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const std::size_t at =
        from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    const std::string_view before = text.substr(0, at);
    const std::string_view after = text.substr(at + separator.size());
    parts.push_back(from_right ? after : before);
    text = from_right ? before : after;
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(
    std::string_view text,
    bool keep_ends
) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line_end = at;
    const char32_t c = next_code_point(text, at);
    const bool breaks = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) ||
                        c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!breaks) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(start, (keep_ends ? at : line_end) - start));
    start = at;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string replace_all(
    std::string_view text,
    std::string_view old,
    std::string_view with,
    std::int64_t limit
) {
  std::string out;
  if (limit < 0) limit = INT64_MAX;
  if (old.empty()) {
    // Between all code points, as Python does.
    std::size_t at = 0;
    while (limit-- > 0) {
      out += with;
      if (at >= text.size()) return out;
      const std::size_t start = at;
      next_code_point(text, at);
      out += text.substr(start, at - start);
    }
    return out.append(text.substr(at));
  }
  std::size_t from = 0;
  while (limit-- > 0) {
    const std::size_t at = text.find(old, from);
    if (at == std::string_view::npos) break;
    out.append(text.substr(from, at - from)).append(with);
    from = at + old.size();
  }
  return out.append(text.substr(from));
}

std::size_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) return code_point_count(text) + 1;
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos;
       at += part.size()) {
    ++count;
  }
  return count;
}

}  // namespace hearth::text::jinja
