#include "hearth/text/tokenizer/regex_syntax.h"

#include <cctype>
#include <vector>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

std::vector<unicode::Range> without(
    const std::vector<unicode::Range>& list,
    unicode::Range out
) {
  std::vector<unicode::Range> kept;
  for (const unicode::Range& r : list) {
    if (r.last < out.first || r.first > out.last) {
      kept.push_back(r);
      continue;
    }
    if (r.first < out.first) kept.push_back({r.first, out.first - 1});
    if (r.last > out.last) kept.push_back({out.last + 1, r.last});
  }
  return kept;
}

class Rewriter {
 public:
  explicit Rewriter(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        char_class();
      } else {
        out_ += c;
        ++at_;
      }
    }
    if (!uses_word_) return std::move(out_);
    // Written once: a pattern that is too long is refused.
    const std::string body = std::move(out_);
    out_ = "(?(DEFINE)(?<hw>";
    named("word", false, false);
    return out_ + "))" + body;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError(
        fmt::format("pattern {:?}: {} at character {}", pattern_, what, at_ + 1)
    );
  }

  void ranges(const std::vector<unicode::Range>& list, bool in_class) {
    if (!in_class) out_ += '[';
    for (const unicode::Range& r : list) {
      out_ += fmt::format("\\x{{{:X}}}", r.first);
      if (r.last > r.first) out_ += fmt::format("-\\x{{{:X}}}", r.last);
    }
    if (!in_class) out_ += ']';
  }

  void named(std::string_view name, bool negated, bool in_class) {
    std::vector<unicode::Range> list = unicode::ranges_of(name);
    // Oniguruma counts these as word characters, but not inside a class.
    if (in_class && name == "word") {
      for (const unicode::Range out :
           {unicode::Range{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}}) {
        list = without(list, out);
      }
    }
    if (list.empty()) fail(fmt::format("unknown class {:?}", name));
    ranges(negated ? unicode::complement(list) : list, in_class);
  }

  // \p{L}, \p{^L}, \P{L}
  void property(bool negated, bool in_class) {
    const std::size_t close = pattern_.find('}', at_);
    if (at_ >= pattern_.size() || pattern_[at_] != '{' ||
        close == pattern_.npos) {
      fail("\\p needs a name in braces");
    }
    std::string_view name = pattern_.substr(at_ + 1, close - at_ - 1);
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    named(name, negated, in_class);
    at_ = close + 1;
  }

  void escape(bool in_class) {
    if (at_ + 1 >= pattern_.size()) fail("a lone backslash");
    const char c = pattern_[at_ + 1];
    const auto simple = [&](std::string_view name, bool negated) {
      named(name, negated, in_class);
      at_ += 2;
    };
    switch (c) {
      case 's':
        return simple("space", false);
      case 'S':
        return simple("space", true);
      case 'd':
        return simple("digit", false);
      case 'D':
        return simple("digit", true);
      case 'w':
        return simple("word", false);
      case 'W':
        return simple("word", true);
      case 'p':
      case 'P':
        at_ += 2;
        return property(c == 'P', in_class);
      case 'h':
        out_ += in_class ? "0-9a-fA-F" : "[0-9a-fA-F]";
        at_ += 2;
        return;
      case 'b':
      case 'B':
        if (in_class) fail("\\b in a class");
        at_ += 2;
        return boundary(c == 'B');
      case 'x':
      case 'u':
        return code_point();
      default:
        break;
    }
    constexpr std::string_view kSame = "trnfvaeAzZ";
    if (std::isalnum(static_cast<unsigned char>(c)) &&
        kSame.find(c) == kSame.npos) {
      fail(fmt::format("escape \\{} is not supported", c));
    }
    if (c == 'v') {
      out_ += "\\x0B";  // in PCRE2 \v is a class
    } else {
      out_ += '\\';
      out_ += c;
    }
    at_ += 2;
  }

  // \b and \B by what stands on both sides, since PCRE2's own idea of a word
  // is another.
  void boundary(bool negated) {
    uses_word_ = true;
    out_ += negated ? "(?:(?<=(?&hw))(?=(?&hw))|(?<!(?&hw))(?!(?&hw)))"
                    : "(?:(?<=(?&hw))(?!(?&hw))|(?<!(?&hw))(?=(?&hw)))";
  }

  // \xHH, \x{H...}, \uHHHH
  void code_point() {
    const bool braces = pattern_.substr(at_, 3) == "\\x{";
    std::size_t begin = at_ + (braces ? 3 : 2), end = begin;
    const std::size_t most = braces ? 6 : pattern_[at_ + 1] == 'u' ? 4 : 2;
    while (end < pattern_.size() && end - begin < most &&
           std::isxdigit(static_cast<unsigned char>(pattern_[end]))) {
      ++end;
    }
    if (end == begin ||
        (braces && (end >= pattern_.size() || pattern_[end] != '}'))) {
      fail("bad code point");
    }
    out_ += fmt::format("\\x{{{}}}", pattern_.substr(begin, end - begin));
    at_ = end + braces;
  }

  void char_class() {
    out_ += '[';
    ++at_;
    if (at_ < pattern_.size() && pattern_[at_] == '^') {
      out_ += '^';
      ++at_;
    }
    if (at_ < pattern_.size() && pattern_[at_] == ']') fail("empty class");
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      const char c = pattern_[at_];
      if (c == '\\') {
        escape(true);
      } else if (c == '[') {
        nested();
      } else if (pattern_.substr(at_, 2) == "&&") {
        fail("intersection of classes is not supported");
      } else {
        out_ += c;
        ++at_;
      }
    }
    if (at_ >= pattern_.size()) fail("a class does not end");
    out_ += ']';
    ++at_;
  }

  // [[:alpha:]] is refused; [a[bc]] is a union and its brackets can go.
  void nested() {
    if (pattern_.substr(at_, 2) == "[:" || pattern_.substr(at_, 2) == "[^") {
      fail("this kind of nested class is not supported");
    }
    ++at_;
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      if (pattern_[at_] == '[') fail("classes nested twice");
      if (pattern_[at_] == '\\') {
        escape(true);
      } else {
        out_ += pattern_[at_++];
      }
    }
    if (at_ >= pattern_.size()) fail("a class does not end");
    ++at_;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::string out_;
  bool uses_word_ = false;
};

}  // namespace

std::string to_pcre2(std::string_view pattern) {
  return Rewriter(pattern).run();
}

}  // namespace hearth::text
