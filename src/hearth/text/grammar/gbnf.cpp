// Grammars in GBNF, the notation of llama.cpp.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hearth/text/grammar/front_ends.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/grammar/recent.h"
#include "hearth/text/grammar/source_text.h"
#include "hearth/text/grammar/utf8_ranges.h"

namespace hearth::text {
namespace grammar {
namespace {

constexpr const char* kWho = "[infer.grammar_of_gbnf]";
constexpr std::size_t kMaxRuleName = 256;

bool is_name(char32_t c) {
  return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') ||
         (c >= U'0' && c <= U'9') || c == U'-' || c == U'_';
}

class Parser {
 public:
  explicit Parser(std::string_view source) : text_(source, kWho) {}

  Rules parse() {
    skip_space();
    while (!text_.at_end()) rule();
    for (const auto& [name, use] : first_use_) {
      if (!rules_.rules[static_cast<std::size_t>(ids_[name])].body) {
        text_.fail_at(use, fmt::format("rule '{}' must be defined", name));
      }
    }
    const auto root = ids_.find("root");
    if (root == ids_.end()) text_.fail_at(0, "there must be a rule 'root'");
    rules_.root = root->second;
    return std::move(rules_);
  }

 private:
  void skip_space() {
    while (!text_.at_end()) {
      const char32_t c = text_.peek();
      if (c == U'#') {
        while (!text_.at_end() && text_.peek() != U'\n') text_.skip(1);
      } else if (c == U' ' || c == U'\t' || c == U'\r' || c == U'\n') {
        text_.skip(1);
      } else {
        return;
      }
    }
  }

  std::string name() {
    const std::size_t at = text_.at();
    std::string name;
    while (!text_.at_end() && is_name(text_.peek())) {
      name += static_cast<char>(text_.take());
    }
    if (name.size() > kMaxRuleName) {
      text_.fail_at(
          at, fmt::format("a name must have at most {} letters", kMaxRuleName)
      );
    }
    return name;
  }

  // Whether a definition begins here; nothing is taken.
  bool at_definition() {
    const std::size_t at = text_.at();
    const bool named = !name().empty();
    skip_space();
    const bool is = named && text_.take_if(U"::=");
    text_.go_back(at);
    return is;
  }

  int id_of(const std::string& name, std::size_t at) {
    const auto [found, added] = ids_.try_emplace(name, 0);
    if (added) {
      found->second = rules_.add(name);
      first_use_[name] = at;
    }
    return found->second;
  }

  void rule() {
    const std::size_t at = text_.at();
    const std::string defined = name();
    skip_space();
    if (defined.empty() || !text_.take_if(U"::=")) {
      text_.fail_at(at, "a rule must begin with a name and '::='");
    }
    const auto id = static_cast<std::size_t>(id_of(defined, at));
    if (rules_.rules[id].body) {
      text_.fail_at(at, fmt::format("rule '{}' must be defined once", defined));
    }
    skip_space();
    ExprPtr body = alternatives(0);
    if (!text_.at_end() && !at_definition()) {
      text_.fail(
          fmt::format(
              "'{}' must not stand here", SourceText::show(text_.peek())
          )
      );
    }
    rules_.rules[id].body = std::move(body);
  }

  ExprPtr alternatives(int depth) {
    std::vector<ExprPtr> branches;
    do {
      skip_space();
      branches.push_back(branch(depth));
    } while (text_.take_if(U'|'));
    return choice(std::move(branches));
  }

  ExprPtr branch(int depth) {
    std::vector<ExprPtr> parts;
    while (!text_.at_end()) {
      const char32_t c = text_.peek();
      if (c == U'|' || c == U')' || (is_name(c) && at_definition())) break;
      ExprPtr part = atom(depth);
      if (!part) break;
      parts.push_back(repeated(std::move(part)));
    }
    return sequence(std::move(parts));
  }

  ExprPtr atom(int depth) {
    const std::size_t at = text_.at();
    if (text_.take_if(U'"')) return literal(at);
    if (text_.take_if(U'[')) return bracket(at);
    if (text_.take_if(U'.')) return chars({{0, kLastCodePoint}});
    if (text_.take_if(U'(')) {
      if (depth >= kMaxNesting) {
        text_.fail_at(
            at, fmt::format("groups must nest at most {} deep", kMaxNesting)
        );
      }
      ExprPtr inner = alternatives(depth + 1);
      if (!text_.take_if(U')')) text_.fail_at(at, "the group must be closed");
      return inner;
    }
    if (is_name(text_.peek())) return call(id_of(name(), at));
    return nullptr;
  }

  ExprPtr repeated(ExprPtr part) {
    skip_space();
    if (text_.take_if(U'*')) {
      part = repeat(std::move(part), 0, kNoLimit);
    } else if (text_.take_if(U'+')) {
      part = repeat(std::move(part), 1, kNoLimit);
    } else if (text_.take_if(U'?')) {
      part = optional(std::move(part));
    } else if (text_.take_if(U'{')) {
      part = counted(std::move(part));
    }
    skip_space();
    return part;
  }

  ExprPtr counted(ExprPtr part) {
    skip_space();
    const int min = text_.peek() == U',' ? 0 : text_.number();
    skip_space();
    int max = min;
    if (text_.take_if(U',')) {
      skip_space();
      max = text_.peek() == U'}' ? kNoLimit : text_.number();
      skip_space();
    }
    if (!text_.take_if(U'}')) text_.fail("'}' must end the counts");
    if (max != kNoLimit && max < min) {
      text_.fail("the counts of a repetition must be in order");
    }
    return repeat(std::move(part), min, max);
  }

  char32_t character(std::size_t begun) {
    if (text_.at_end()) text_.fail_at(begun, "what is opened must be closed");
    const std::size_t at = text_.at();
    const char32_t c = text_.take();
    if (c != U'\\') return c;
    if (text_.at_end()) text_.fail_at(begun, "what is opened must be closed");
    switch (const char32_t escaped = text_.take()) {
      case U'n':
        return '\n';
      case U'r':
        return '\r';
      case U't':
        return '\t';
      case U'x':
        return text_.hex(2, 2);
      case U'u':
        return text_.hex(4, 4);
      case U'U':
        return text_.hex(8, 8);
      case U'\\':
      case U'"':
      case U'[':
      case U']':
      case U'-':
      case U'^':
        return escaped;
      default:
        text_.fail_at(
            at,
            fmt::format(
                "the escape '\\{}' is not supported", SourceText::show(escaped)
            )
        );
    }
  }

  ExprPtr literal(std::size_t at) {
    std::string bytes;
    while (!text_.take_if(U'"')) {
      const std::size_t here = text_.at();
      const char32_t c = character(at);
      if (c >= 0xD800 && c < 0xE000) {
        text_.fail_at(here, "a character must not be a surrogate");
      }
      append_utf8(c, bytes);
    }
    return text(bytes);
  }

  ExprPtr bracket(std::size_t at) {
    const bool negated = text_.take_if(U'^');
    std::vector<CodeRange> ranges;
    while (!text_.take_if(U']')) {
      const std::size_t here = text_.at();
      CodeRange range;
      range.first = range.last = character(at);
      if (text_.peek() == U'-' && text_.peek(1) != U']') {
        text_.skip(1);
        range.last = character(at);
        if (range.last < range.first) {
          text_.fail_at(here, "a range must have two characters in order");
        }
      }
      ranges.push_back(range);
    }
    return chars(negated ? all_but(std::move(ranges)) : std::move(ranges));
  }

  SourceText text_;
  Rules rules_;
  std::map<std::string, int> ids_;
  std::map<std::string, std::size_t> first_use_;
};

}  // namespace

Rules gbnf_rules(std::string_view source, Effort& effort) {
  // Every character is looked at a few times at most.
  effort.spend(source.size());
  return Parser(source).parse();
}

}  // namespace grammar

std::shared_ptr<const Grammar> grammar_of_gbnf(
    std::string_view source,
    Effort* effort
) {
  return grammar::recent_grammar(
      "gbnf " + std::string(source), grammar::kWho, effort,
      [&](Effort& used) { return grammar::gbnf_rules(source, used); }
  );
}

}  // namespace hearth::text
