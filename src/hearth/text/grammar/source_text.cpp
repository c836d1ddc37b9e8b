#include "hearth/text/grammar/source_text.h"

#include <utility>

#include <fmt/format.h>

#include "hearth/base/ascii.h"
#include "hearth/base/error.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text::grammar {
SourceText::SourceText(
    std::string_view source,
    std::string who,
    std::size_t max_bytes
)
    : who_(std::move(who)) {
  if (source.size() > max_bytes) {
    throw UsageError(
        fmt::format(
            "{} the source must have at most {} bytes, got {}", who_, max_bytes,
            source.size()
        )
    );
  }
  const std::size_t valid = text::valid_utf8_prefix(source);
  if (valid != source.size()) {
    throw UsageError(
        fmt::format("{} the source must be UTF-8, byte {} is not", who_, valid)
    );
  }
  text_ = text::to_code_points(source);
}

bool SourceText::take_if(std::u32string_view expected) {
  if (std::u32string_view(text_).substr(at_, expected.size()) != expected) {
    return false;
  }
  at_ += expected.size();
  return true;
}

char32_t SourceText::hex(int least, int most) {
  char32_t value = 0;
  int count = 0;
  for (; count < most && !at_end() && hex_digit(peek()) >= 0; ++count) {
    value = value * 16 + static_cast<char32_t>(hex_digit(take()));
  }
  if (count < least)
    fail(fmt::format("{} hexadecimal digits must follow", least));
  if (value > kLastCodePoint) fail("a character must be at most U+10FFFF");
  return value;
}

int SourceText::number() {
  if (peek() < U'0' || peek() > U'9') fail("a number must follow");
  int value = 0;
  while (peek() >= U'0' && peek() <= U'9') {
    value = value * 10 + static_cast<int>(take() - U'0');
    if (value > kMaxCount) {
      fail(fmt::format("a count must be at most {}", kMaxCount));
    }
  }
  return value;
}

void SourceText::fail(std::string_view what) const {
  fail_at(at_, what);
}

void SourceText::fail_at(std::size_t at, std::string_view what) const {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i < at && i < text_.size(); ++i) {
    ++column;
    if (text_[i] == U'\n') {
      ++line;
      column = 1;
    }
  }
  const bool one_line = text_.find(U'\n') == std::u32string::npos;
  throw UsageError(
      one_line ? fmt::format("{} {}, at character {}", who_, what, column)
               : fmt::format(
                     "{} {}, at line {}, column {}", who_, what, line, column
                 )
  );
}

std::string SourceText::show(char32_t code) {
  if (code < 0x20 || code == 0x7F) {
    return fmt::format("U+{:04X}", static_cast<std::uint32_t>(code));
  }
  std::string out;
  text::append_utf8(out, code);
  return out;
}

}  // namespace hearth::text::grammar
