// A template's source to tokens.
#include <charconv>
#include <cstdlib>

#include "hearth/text/template/lexer_impl.h"
#include "hearth/text/template/text.h"

namespace hearth::text::jinja {
namespace {

using Kind = TokenKind;

bool is_digit_char(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_char(char c) {
  return is_digit_char(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) data();
    push(Kind::kEnd, at_, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string message, std::size_t offset) const {
    throw SyntaxFailure{std::move(message), offset};
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  bool follows(std::string_view text, std::size_t from) const {
    return source_.substr(from, text.size()) == text;
  }
  Token& push(Kind kind, std::size_t offset, std::string_view text) {
    return tokens_.emplace_back(
        Token{kind, static_cast<std::uint32_t>(offset), std::string(text)}
    );
  }
  std::size_t skip_spaces(std::size_t at) const {
    while (at < source_.size()) {
      std::size_t next = at;
      if (!is_space(next_code_point(source_, next))) break;
      at = next;
    }
    return at;
  }

  // Text up to the next tag, then the tag.
  void data() {
    std::size_t tag = at_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos) break;
      const char c = tag + 1 < source_.size() ? source_[tag + 1] : '\0';
      if (c == '{' || c == '%' || c == '#') break;
      ++tag;
    }
    if (tag == std::string_view::npos) {
      push(Kind::kData, at_, source_.substr(at_));
      at_ = source_.size();
      return;
    }
    const char c = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    push_text(source_.substr(at_, tag - at_), sign, c != '{');
    at_ = tag + 2 + (sign == '-' || sign == '+');
    if (c == '{') {
      push(Kind::kVariableBegin, tag, "");
      inside('}');
    } else if (c == '#') {
      comment(tag);
    } else if (!raw(tag)) {
      push(Kind::kBlockBegin, tag, "");
      inside('%');
    }
  }

  // lstrip_blocks: white space between a line's start and a block goes.
  void push_text(std::string_view text, char sign, bool strips) {
    const std::size_t offset = at_;
    if (sign == '-') {
      text = strip(text, Side::kRight);
    } else if (sign != '+' && strips) {
      const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
      const std::string_view tail = text.substr(line);
      if ((line > 0 || line_starting_) && strip(tail, Side::kBoth).empty()) {
        text = text.substr(0, line);
      }
    }
    if (!text.empty()) push(Kind::kData, offset, text);
  }

  // What follows a closing tag: `-` takes all white space, a plain one a
  // single newline where trim_blocks applies.
  void close(std::size_t end, char sign, bool trims) {
    at_ = end;
    if (sign == '-') {
      at_ = skip_spaces(end);
    } else if (sign != '+' && trims && peek() == '\n') {
      ++at_;
    }
    line_starting_ = source_[at_ - 1] == '\n';
  }

  void comment(std::size_t tag) {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) {
      fail("Missing end of comment tag", tag);
    }
    const char sign = end > at_ ? source_[end - 1] : '\0';
    close(end + 2, sign, true);
  }

  // `word` and a closing tag at `from`; the position after, or npos.
  std::size_t closed_word(
      std::string_view word,
      std::size_t from,
      char& sign
  ) const {
    std::size_t at = skip_spaces(from);
    if (!follows(word, at)) return std::string_view::npos;
    at = skip_spaces(at + word.size());
    sign = at < source_.size() ? source_[at] : '\0';
    if (sign == '-' || sign == '+') ++at;
    return follows("%}", at) ? at + 2 : std::string_view::npos;
  }

  bool raw(std::size_t tag) {
    char sign = '\0';
    const std::size_t start = closed_word("raw", at_, sign);
    if (start == std::string_view::npos || sign == '+') return false;
    close(start, sign, false);
    for (std::size_t end = source_.find("{%", at_);
         end != std::string_view::npos; end = source_.find("{%", end + 2)) {
      const char before = end + 2 < source_.size() ? source_[end + 2] : '\0';
      const std::size_t word = end + 2 + (before == '-' || before == '+');
      const std::size_t after = closed_word("endraw", word, sign);
      if (after == std::string_view::npos) continue;
      push_text(source_.substr(at_, end - at_), before, true);
      close(after, sign, true);
      return true;
    }
    fail("Missing end of raw directive", tag);
  }

  // Tokens of one tag; `mark` is the first character of its end.
  void inside(char mark) {
    std::string open;  // the brackets still to be closed
    const char end[3] = {mark, '}', '\0'};
    while (at_ < source_.size()) {
      if (open.empty()) {
        const char sign = peek();
        const bool signed_end = (sign == '-' || (sign == '+' && mark == '%')) &&
                                follows(end, at_ + 1);
        if (signed_end || follows(end, at_)) {
          push(mark == '%' ? Kind::kBlockEnd : Kind::kVariableEnd, at_, "");
          close(at_ + 2 + signed_end, signed_end ? sign : '\0', mark == '%');
          return;
        }
      }
      const std::size_t next = skip_spaces(at_);
      if (next != at_) {
        at_ = next;
      } else {
        token(open);
      }
    }
  }

  void token(std::string& open) {
    const char c = peek();
    if (is_digit_char(c)) return number();
    if (is_name_char(c)) {
      const std::size_t start = at_;
      while (at_ < source_.size() && is_name_char(source_[at_])) ++at_;
      push(Kind::kName, start, source_.substr(start, at_ - start));
      return;
    }
    if (c == '"' || c == '\'') return string(c);
    operation(open);
  }

  // Digits with single underscores between them.
  std::size_t digits(std::size_t from) const {
    std::size_t at = from;
    while (at < source_.size() &&
           (is_digit_char(source_[at]) ||
            (source_[at] == '_' && at > from && at + 1 < source_.size() &&
             is_digit_char(source_[at + 1])))) {
      ++at;
    }
    return at;
  }

  void number() {
    const std::size_t start = at_;
    std::size_t end = digits(at_);
    bool real = false;
    const bool after_dot = start > 0 && source_[start - 1] == '.';
    if (!after_dot) {
      if (end < source_.size() && source_[end] == '.' &&
          digits(end + 1) > end + 1) {
        end = digits(end + 1);
        real = true;
      }
      if (end < source_.size() && (source_[end] | 32) == 'e') {
        const bool sign = end + 1 < source_.size() &&
                          (source_[end + 1] == '+' || source_[end + 1] == '-');
        const std::size_t exponent = digits(end + 1 + sign);
        if (exponent > end + 1 + sign) {
          end = exponent;
          real = true;
        }
      }
    }
    std::string text;
    for (const char c : source_.substr(start, end - start)) {
      if (c != '_') text += c;
    }
    at_ = end;
    Token& made = push(real ? Kind::kFloat : Kind::kInteger, start, text);
    const char* last = text.data() + text.size();
    if (real) {
      std::from_chars(text.data(), last, made.number);
    } else if (std::from_chars(text.data(), last, made.integer).ec !=
               std::errc{}) {
      fail("integers must fit 64 bits", start);
    }
  }

  void string(char mark) {
    const std::size_t start = at_++;
    std::size_t end = at_;
    while (end < source_.size() && source_[end] != mark) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end >= source_.size()) {
      const std::string shown = mark == '"' ? "'\"'" : "\"'\"";
      fail("unexpected char " + shown + " at " + std::to_string(start), start);
    }
    const std::string_view body = source_.substr(at_, end - at_);
    at_ = end + 1;
    push(Kind::kString, start, unescape(body, start));
  }

  std::string unescape(std::string_view body, std::size_t offset) const {
    std::string out;
    for (std::size_t i = 0; i < body.size();) {
      if (body[i] != '\\' || i + 1 >= body.size()) {
        out += body[i++];
        continue;
      }
      const char c = body[i + 1];
      i += 2;
      static constexpr std::string_view kFrom = "abfnrtv\\'\"";
      static constexpr std::string_view kTo = "\a\b\f\n\r\t\v\\'\"";
      if (const std::size_t k = kFrom.find(c); k != kFrom.npos) {
        out += kTo[k];
      } else if (c == '\n') {
        continue;
      } else if (c >= '0' && c <= '7') {
        --i;
        append_code_point(out, read_code(body, i, 3, 8, false, offset));
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t size = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        append_code_point(out, read_code(body, i, size, 16, true, offset));
      } else {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  // Up to `size` digits of a base; exactly that many when `exact`.
  char32_t read_code(
      std::string_view body,
      std::size_t& i,
      std::size_t size,
      int base,
      bool exact,
      std::size_t offset
  ) const {
    std::uint32_t code = 0;
    const std::string_view field = body.substr(i, size);
    const auto read =
        std::from_chars(field.data(), field.data() + field.size(), code, base);
    const auto used = static_cast<std::size_t>(read.ptr - field.data());
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (read.ec != std::errc{} || (exact && used != size) || code > 0x10FFFF ||
        surrogate) {
      fail("illegal Unicode escape in a string", offset);
    }
    i += used;
    return code;
  }

  void operation(std::string& open) {
    static constexpr std::string_view kTwo[] = {
        "//", "**", "==", "!=", ">=", "<="
    };
    static constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    std::size_t size = 0;
    for (const std::string_view two : kTwo) {
      if (follows(two, at_)) size = 2;
    }
    const char c = peek();
    if (size == 0 && kOne.find(c) != kOne.npos) size = 1;
    if (size == 0) {
      std::size_t end = at_;
      next_code_point(source_, end);
      fail(
          "unexpected char '" + std::string(source_.substr(at_, end - at_)) +
              "' at " + std::to_string(at_),
          at_
      );
    }
    if (c == '{' || c == '(' || c == '[') {
      open += c == '(' ? ')' : static_cast<char>(c + 2);
    } else if (c == '}' || c == ')' || c == ']') {
      const std::string found = std::string("unexpected '") + c + "'";
      if (open.empty()) fail(found, at_);
      if (open.back() != c)
        fail(found + ", expected '" + open.back() + "'", at_);
      open.pop_back();
    }
    push(Kind::kOperator, at_, source_.substr(at_, size));
    at_ += size;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case Kind::kName:
    case Kind::kOperator:
      return token.text;
    case Kind::kData:
      return "template data / text";
    case Kind::kBlockBegin:
      return "begin of statement block";
    case Kind::kBlockEnd:
      return "end of statement block";
    case Kind::kVariableBegin:
      return "begin of print statement";
    case Kind::kVariableEnd:
      return "end of print statement";
    case Kind::kString:
      return "string";
    case Kind::kInteger:
      return "integer";
    case Kind::kFloat:
      return "float";
    case Kind::kEnd:
      return "end of template";
  }
  return "token";
}

}  // namespace hearth::text::jinja
