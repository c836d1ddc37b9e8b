#include "hearth/text/grammar/regex.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hearth/text/grammar/front_ends.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/grammar/recent.h"
#include "hearth/text/grammar/source_text.h"
#include "hearth/text/tokenizer/unicode.h"

namespace hearth::text::grammar {
namespace {

using Ranges = std::vector<CodeRange>;

// The characters that a dot does not match, as in ECMAScript.
const Ranges kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
const Ranges kDigits{{'0', '9'}};
const Ranges kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace{{'\t', '\r'}, {' ', ' '}};

// A class of Unicode has hundreds of ranges, so patterns are kept short.
constexpr std::size_t kMaxPattern = std::size_t{1} << 14;

class RegexParser {
 public:
  RegexParser(std::string_view pattern, const RegexOptions& options)
      : text_(pattern, options.who, kMaxPattern), options_(options) {}

  ExprPtr parse() {
    std::vector<ExprPtr> branches;
    do {
      branches.push_back(outer_branch());
    } while (text_.take_if(U'|'));
    if (!text_.at_end()) text_.fail("')' must close a group");
    return choice(std::move(branches));
  }

 private:
  ExprPtr made(Ranges ranges) const {
    if (options_.effort != nullptr) options_.effort->spend(ranges.size() * 8);
    return options_.chars ? options_.chars(std::move(ranges))
                          : chars(std::move(ranges));
  }
  ExprPtr anything() const { return repeat(made(all_but({})), 0, kNoLimit); }

  ExprPtr outer_branch() {
    const bool begins = text_.take_if(U'^');
    ExprPtr inner = branch();
    const bool ends = text_.take_if(U'$');
    if (!text_.at_end() && text_.peek() != U'|' && text_.peek() != U')') {
      text_.fail("'$' must be the end of the pattern");
    }
    if (!options_.search) return inner;
    std::vector<ExprPtr> parts;
    if (!begins) parts.push_back(anything());
    parts.push_back(std::move(inner));
    if (!ends) parts.push_back(anything());
    return sequence(std::move(parts));
  }

  ExprPtr alternatives() {
    std::vector<ExprPtr> branches;
    do {
      branches.push_back(branch());
    } while (text_.take_if(U'|'));
    return choice(std::move(branches));
  }

  ExprPtr branch() {
    std::vector<ExprPtr> parts;
    while (!text_.at_end() && text_.peek() != U'|' && text_.peek() != U')' &&
           !(text_.peek() == U'$' && depth_ == 0)) {
      parts.push_back(quantified(atom()));
    }
    return sequence(std::move(parts));
  }

  ExprPtr quantified(ExprPtr part) {
    bool again = false;
    while (const auto counts = quantifier()) {
      if (again) text_.fail("a quantifier must not follow another");
      again = true;
      part = repeat(std::move(part), counts->first, counts->second);
      // Which match a lazy one prefers does not change what matches.
      text_.take_if(U'?');
      if (text_.peek() == U'+') {
        text_.fail("possessive quantifiers are not supported");
      }
    }
    return part;
  }

  std::optional<std::pair<int, int>> quantifier() {
    if (text_.take_if(U'*')) return std::pair{0, kNoLimit};
    if (text_.take_if(U'+')) return std::pair{1, kNoLimit};
    if (text_.take_if(U'?')) return std::pair{0, 1};
    if (!text_.take_if(U'{')) return std::nullopt;
    const int min = text_.number();
    int max = min;
    if (text_.take_if(U','))
      max = text_.peek() == U'}' ? kNoLimit : text_.number();
    if (!text_.take_if(U'}')) text_.fail("'}' must end the counts");
    if (max != kNoLimit && max < min) {
      text_.fail("the counts of a repetition must be in order");
    }
    return std::pair{min, max};
  }

  ExprPtr atom() {
    const std::size_t at = text_.at();
    const char32_t c = text_.take();
    switch (c) {
      case U'(':
        return group(at);
      case U'[':
        return made(bracket(at));
      case U'.':
        return made(all_but(kLineEnds));
      case U'\\':
        return escaped(at);
      case U'^':
        text_.fail_at(at, "'^' is supported at the beginning only");
      case U'$':
        text_.fail_at(at, "'$' is supported at the end only");
      case U'*':
      case U'+':
      case U'?':
      case U'{':
        text_.fail_at(
            at, fmt::format("'{}' must follow something", SourceText::show(c))
        );
      case U'}':
      case U']':
        text_.fail_at(
            at, fmt::format(
                    "'{}' must be written with a backslash", SourceText::show(c)
                )
        );
      default:
        return made({{c, c}});
    }
  }

  // A property of Unicode has hundreds of ranges: it is made once.
  ExprPtr escaped(std::size_t at) {
    if (options_.wide && (text_.take_if(U'b') || text_.take_if(U'B'))) {
      return sequence({});
    }
    const bool property = text_.peek() == U'p' || text_.peek() == U'P';
    Ranges ranges = escape(at, false);
    if (!property) return made(std::move(ranges));
    const auto written = text_.between(at, text_.at());
    ExprPtr& known = escapes_[std::u32string(written)];
    if (!known) known = made(std::move(ranges));
    return known;
  }

  ExprPtr group(std::size_t at) {
    if (options_.wide && take_look_around()) {
      skip_group(at);
      return sequence({});
    }
    if (text_.take_if(U'?')) group_kind(at);
    if (text_.peek() == U'*') {
      text_.fail_at(at, "verbs '(*...)' are not supported");
    }
    if (++depth_ > kMaxNesting) {
      text_.fail_at(
          at, fmt::format("groups must nest at most {} deep", kMaxNesting)
      );
    }
    ExprPtr inner = alternatives();
    if (!text_.take_if(U')')) text_.fail_at(at, "the group must be closed");
    --depth_;
    return inner;
  }

  bool take_look_around() {
    return text_.take_if(U"?=") || text_.take_if(U"?!") ||
           text_.take_if(U"?<=") || text_.take_if(U"?<!");
  }

  // Skips to the end of the group, whatever is in it.
  void skip_group(std::size_t at) {
    int open = 1;
    bool in_class = false;
    while (open > 0) {
      if (text_.at_end()) text_.fail_at(at, "the group must be closed");
      const char32_t c = text_.take();
      if (c == U'\\' && !text_.at_end()) {
        text_.skip(1);
      } else if (in_class) {
        in_class = c != U']';
      } else if (c == U'[') {
        in_class = true;
      } else if (c == U'(') {
        ++open;
      } else if (c == U')') {
        --open;
      }
    }
  }

  void group_kind(std::size_t at) {
    if (text_.take_if(U':')) return;
    if (text_.take_if(U"=") || text_.take_if(U"!")) {
      text_.fail_at(at, "lookahead is not supported");
    }
    if (text_.take_if(U"<=") || text_.take_if(U"<!")) {
      text_.fail_at(at, "lookbehind is not supported");
    }
    if (text_.take_if(U'>')) {
      text_.fail_at(at, "atomic groups are not supported");
    }
    if (text_.take_if(U"P=") || text_.take_if(U"P>")) {
      text_.fail_at(at, "references to groups are not supported");
    }
    if (text_.take_if(U'(')) {
      text_.fail_at(at, "conditional groups are not supported");
    }
    if (text_.take_if(U"P<") || text_.take_if(U'<')) {
      std::size_t letters = 0;
      for (; !text_.at_end() && text_.peek() != U'>'; ++letters) text_.skip(1);
      if (letters == 0 || !text_.take_if(U'>')) {
        text_.fail_at(at, "the group's name must end with '>'");
      }
      return;
    }
    text_.fail_at(at, "flags in a group are not supported");
  }

  Ranges bracket(std::size_t at) {
    const bool negated = text_.take_if(U'^');
    if (text_.peek() == U']') {
      text_.fail("']' must not be first in a class; write '\\]'");
    }
    Ranges all;
    while (!text_.take_if(U']')) {
      if (text_.at_end()) text_.fail_at(at, "the class must be closed by ']'");
      const std::size_t first_at = text_.at();
      Ranges first = class_part();
      const bool single = first.size() == 1 && first[0].first == first[0].last;
      if (text_.peek() == U'-' && text_.peek(1) != U']') {
        text_.skip(1);
        if (text_.at_end())
          text_.fail_at(at, "the class must be closed by ']'");
        const Ranges last = class_part();
        if (!single || last.size() != 1 || last[0].first != last[0].last ||
            last[0].first < first[0].first) {
          text_.fail_at(first_at, "a range must have two characters in order");
        }
        first[0].last = last[0].first;
      }
      all.insert(all.end(), first.begin(), first.end());
    }
    return negated ? all_but(std::move(all)) : all;
  }

  Ranges class_part() {
    const std::size_t at = text_.at();
    const char32_t c = text_.take();
    if (c == U'[' && (text_.peek() == U':' || text_.peek() == U'.' ||
                      text_.peek() == U'=')) {
      text_.fail_at(at, "POSIX classes '[:...:]' are not supported");
    }
    return c == U'\\' ? escape(at, true) : Ranges{{c, c}};
  }

  Ranges escape(std::size_t at, bool in_class) {
    if (text_.at_end()) text_.fail_at(at, "a backslash must not be last");
    const char32_t c = text_.take();
    const auto one = [](char32_t code) { return Ranges{{code, code}}; };
    switch (c) {
      case U'd':
        return kDigits;
      case U'D':
        return all_but(kDigits);
      case U'w':
        return kWord;
      case U'W':
        return all_but(kWord);
      case U's':
        return kSpace;
      case U'S':
        return all_but(kSpace);
      case U'n':
        return one('\n');
      case U'r':
        return one('\r');
      case U't':
        return one('\t');
      case U'f':
        return one('\f');
      case U'v':
        return one('\v');
      case U'x':
        return one(braced_hex(2));
      case U'u':
        return one(unicode_escape(at));
      case U'p':
        return property(at);
      case U'P':
        return all_but(property(at));
      case U'b':
        if (in_class) return one('\b');
        [[fallthrough]];
      case U'B':
        text_.fail_at(at, "word boundaries are not supported");
      case U'k':
        text_.fail_at(at, "back references are not supported");
      default:
        break;
    }
    if (c == U'0' && (text_.peek() < U'0' || text_.peek() > U'9'))
      return one(0);
    if (c >= U'0' && c <= U'9') {
      text_.fail_at(at, "back references are not supported");
    }
    const bool letter = (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
    if (letter || c >= 0x80) {
      text_.fail_at(
          at,
          fmt::format("the escape '\\{}' is not supported", SourceText::show(c))
      );
    }
    return one(c);
  }

  char32_t braced_hex(int digits) {
    if (!text_.take_if(U'{')) return text_.hex(digits, digits);
    const char32_t code = text_.hex(1, 6);
    if (!text_.take_if(U'}')) text_.fail("'}' must end the character");
    return code;
  }

  char32_t unicode_escape(std::size_t at) {
    char32_t code = braced_hex(4);
    if (code >= 0xD800 && code < 0xDC00 && text_.take_if(U"\\u")) {
      const char32_t low = text_.hex(4, 4);
      if (low >= 0xDC00 && low < 0xE000) {
        return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    if (code >= 0xD800 && code < 0xE000) {
      text_.fail_at(at, "surrogates must come in pairs");
    }
    return code;
  }

  Ranges property(std::size_t at) {
    std::string name;
    if (text_.take_if(U'{')) {
      while (!text_.at_end() && text_.peek() != U'}') {
        name += SourceText::show(text_.take());
      }
      if (!text_.take_if(U'}')) text_.fail_at(at, "'}' must end the property");
    } else if (!text_.at_end()) {
      name = SourceText::show(text_.take());
    }
    const auto known = properties_.find(name);
    if (known != properties_.end()) return known->second;
    Ranges ranges;
    const bool category = !name.empty() && name.size() <= 2;
    const bool script = name == "Han" || name == "Hiragana" ||
                        name == "Katakana" || name == "Hangul";
    if (category || script) {
      for (const auto& range : text::unicode::ranges_of(name)) {
        ranges.push_back({range.first, range.last});
      }
    }
    if (ranges.empty()) {
      text_.fail_at(
          at, fmt::format("the property '{}' is not supported", name)
      );
    }
    return properties_[name] = ranges;
  }

  SourceText text_;
  const RegexOptions& options_;
  int depth_ = 0;
  std::map<std::string, Ranges> properties_;  // finding them takes a while
  std::map<std::u32string, ExprPtr> escapes_;
};

}  // namespace

ExprPtr regex_expr(std::string_view pattern, const RegexOptions& options) {
  return RegexParser(pattern, options).parse();
}

Rules regex_rules(std::string_view pattern, Effort& effort) {
  Rules rules;
  RegexOptions options;
  options.effort = &effort;
  rules.root = rules.add("the pattern", regex_expr(pattern, options));
  return rules;
}

}  // namespace hearth::text::grammar

namespace hearth::text {

std::shared_ptr<const Grammar> grammar_of_regex(
    std::string_view pattern,
    Effort* effort
) {
  return grammar::recent_grammar(
      "regex " + std::string(pattern), grammar::RegexOptions().who, effort,
      [&](Effort& used) { return grammar::regex_rules(pattern, used); }
  );
}

}  // namespace hearth::text
