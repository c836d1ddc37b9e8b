#include "hearth/text/grammar/json_parts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "hearth/text/grammar/utf8_ranges.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text::grammar {
namespace {

// Stand as they are between quotes.
const std::vector<CodeRange> kPlain{
    {0x20, 0x21},
    {0x23, 0x5B},
    {0x5D, kLastCodePoint}
};

std::vector<CodeRange> intersection(
    const std::vector<CodeRange>& a,
    const std::vector<CodeRange>& b
) {
  std::vector<CodeRange> both = all_but(a);
  const std::vector<CodeRange> rest = all_but(b);
  both.insert(both.end(), rest.begin(), rest.end());
  return all_but(std::move(both));
}

ExprPtr hex_digits(int count) {
  return repeat(chars({{'0', '9'}, {'a', 'f'}, {'A', 'F'}}), count, count);
}

// The escape of a character that needs one.
std::string escape_of(char32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
  }
}

ExprPtr character(char32_t code) {
  std::string bytes;
  append_utf8(code, bytes);
  return text(bytes);
}

// Names as a tree of characters; its leaves are ends.
struct NameTree {
  std::map<char32_t, std::unique_ptr<NameTree>> next;
  bool ends = false;
};

// Texts from the root to the character by which they leave the tree.
ExprPtr leaving(const NameTree& tree) {
  std::vector<CodeRange> known;
  std::vector<ExprPtr> ways;
  for (const auto& [code, below] : tree.next) {
    known.push_back({code, code});
    if (below->next.empty()) {
      ways.push_back(sequence({character(code), chars(kPlain)}));
    } else {
      ways.push_back(sequence({character(code), leaving(*below)}));
    }
  }
  ways.push_back(chars(intersection(kPlain, all_but(std::move(known)))));
  return choice(std::move(ways));
}

// Texts from the root that end without having left the tree.
ExprPtr stopping(const NameTree& tree) {
  std::vector<ExprPtr> ways;
  for (const auto& [code, below] : tree.next) {
    if (below->next.empty()) continue;
    ways.push_back(sequence({character(code), stopping(*below)}));
  }
  if (!tree.ends) ways.push_back(sequence({}));
  return choice(std::move(ways));
}

}  // namespace

ExprPtr json_space() {
  static const ExprPtr space = choice(
      {sequence({}), text(" "),
       sequence({text("\n"), repeat(text(" "), 0, kMaxIndent)})}
  );
  return space;
}

ExprPtr json_colon() {
  return sequence({text(":"), optional(text(" "))});
}

ExprPtr json_comma() {
  return sequence({text(","), json_space()});
}

ExprPtr json_chars(const std::vector<CodeRange>& ranges) {
  std::vector<ExprPtr> ways{chars(intersection(kPlain, ranges))};
  for (const CodeRange& range : intersection(ranges, all_but(kPlain))) {
    for (char32_t code = range.first; code <= range.last; ++code) {
      ways.push_back(text(escape_of(code)));
    }
  }
  return choice(std::move(ways));
}

ExprPtr json_char() {
  static const ExprPtr any = [] {
    const ExprPtr below_d8 = choice(
        {sequence(
             {chars(
                  {{'0', '9'}, {'a', 'c'}, {'A', 'C'}, {'e', 'f'}, {'E', 'F'}}
              ),
              hex_digits(3)}
         ),
         sequence(
             {chars({{'d', 'd'}, {'D', 'D'}}), chars({{'0', '7'}}),
              hex_digits(2)}
         )}
    );
    const ExprPtr d = chars({{'d', 'd'}, {'D', 'D'}});
    const ExprPtr pair = sequence(
        {d, chars({{'8', '9'}, {'a', 'b'}, {'A', 'B'}}), hex_digits(2),
         text("\\u"), d, chars({{'c', 'f'}, {'C', 'F'}}), hex_digits(2)}
    );
    const ExprPtr short_escape = chars(
        {{'"', '"'},
         {'\\', '\\'},
         {'/', '/'},
         {'b', 'b'},
         {'f', 'f'},
         {'n', 'n'},
         {'r', 'r'},
         {'t', 't'}}
    );
    return choice(
        {chars(kPlain),
         sequence(
             {text("\\"), choice(
                              {short_escape,
                               sequence({text("u"), choice({below_d8, pair})})}
                          )}
         )}
    );
  }();
  return any;
}

ExprPtr json_string(int min, int max) {
  return sequence({text("\""), repeat(json_char(), min, max), text("\"")});
}

ExprPtr json_other_name(const std::vector<std::string>& taken) {
  NameTree tree;
  for (const std::string& name : taken) {
    // A name that needs escapes cannot be written without them.
    const auto codes = text::to_code_points(text::repair_utf8(name));
    const bool plain = std::all_of(codes.begin(), codes.end(), [](char32_t c) {
      return c >= 0x20 && c != '"' && c != '\\';
    });
    if (!plain) continue;
    NameTree* at = &tree;
    for (const char32_t code : codes) {
      auto& next = at->next[code];
      if (!next) next = std::make_unique<NameTree>();
      at = next.get();
    }
    at->ends = true;
  }
  const ExprPtr more = repeat(chars(kPlain), 0, kNoLimit);
  return sequence(
      {text("\""), choice({sequence({leaving(tree), more}), stopping(tree)}),
       text("\"")}
  );
}

ExprPtr json_integer() {
  const ExprPtr digits =
      sequence({chars({{'1', '9'}}), repeat(chars({{'0', '9'}}), 0, 17)});
  return choice({text("0"), sequence({optional(text("-")), digits})});
}

ExprPtr json_number() {
  const ExprPtr digit = chars({{'0', '9'}});
  return sequence(
      {optional(text("-")),
       choice(
           {text("0"), sequence({chars({{'1', '9'}}), repeat(digit, 0, 17)})}
       ),
       optional(sequence({text("."), repeat(digit, 1, 16)})),
       optional(sequence(
           {chars({{'e', 'e'}, {'E', 'E'}}),
            optional(chars({{'+', '+'}, {'-', '-'}})), repeat(digit, 1, 2)}
       ))}
  );
}

ExprPtr json_literal(const Json& value) {
  return text(to_json_line(value));
}

AnyJson add_any_json(Rules& rules) {
  AnyJson any;
  any.value = rules.add("any value");
  any.object = rules.add("any object");
  any.array = rules.add("any array");
  const ExprPtr value = call(any.value);
  const ExprPtr pair =
      sequence({json_string(0, kNoLimit), json_colon(), value});
  const auto list = [](const ExprPtr& one) {
    return sequence({one, repeat(sequence({json_comma(), one}), 0, kNoLimit)});
  };
  const auto body = [&](int rule) -> ExprPtr& {
    return rules.rules[static_cast<std::size_t>(rule)].body;
  };
  body(any.object) = choice(
      {json_bracketed("{", list(pair), "}"), json_bracketed("{", nullptr, "}")}
  );
  body(any.array) = choice(
      {json_bracketed("[", list(value), "]"), json_bracketed("[", nullptr, "]")}
  );
  body(any.value) = choice(
      {json_string(0, kNoLimit), json_number(), call(any.object),
       call(any.array), text("true"), text("false"), text("null")}
  );
  return any;
}

ExprPtr json_bracketed(
    std::string_view open,
    ExprPtr parts,
    std::string_view close
) {
  if (!parts) return sequence({text(open), text(close)});
  return sequence(
      {text(open), json_space(), std::move(parts), json_space(), text(close)}
  );
}

}  // namespace hearth::text::grammar
