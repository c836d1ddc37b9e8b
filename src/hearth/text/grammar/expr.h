#pragma once
// What every front end produces: named rules whose bodies are expressions over
// bytes and characters. Nothing here runs; automaton.h compiles it.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::text::grammar {

struct CodeRange {
  char32_t first = 0, last = 0;
  friend bool operator==(const CodeRange&, const CodeRange&) = default;
};

constexpr char32_t kLastCodePoint = 0x10FFFF;
constexpr int kNoLimit = -1;

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct Expr {
  enum class Kind : unsigned char {
    bytes,
    chars,
    sequence,
    choice,
    repeat,
    rule
  };
  Kind kind = Kind::sequence;
  std::string bytes;
  std::vector<CodeRange> chars;  // sorted, apart from each other
  std::vector<ExprPtr> parts;    // one of a repeat
  int min = 0, max = 0;          // of a repeat; max may be kNoLimit
  int rule = -1;
  // Facts about the whole expression, known when it is made: how deep it nests,
  // about how many states it takes (a call counts as one), and whether it calls
  // rules.
  int depth = 1;
  std::size_t size = 1;
  bool calls = false;

  Expr() = default;
  // Does not recurse, however deep it is.
  ~Expr();
  Expr(const Expr&) = delete;
  Expr& operator=(const Expr&) = delete;
};

// No expression nests deeper: its maker throws UsageError. Whatever walks
// expressions by recursion fits the 512 KiB stack of a thread on macOS.
constexpr int kMaxExprDepth = 1000;
// Sizes stop here.
constexpr std::size_t kHugeSize = std::size_t{1} << 30;

ExprPtr text(std::string_view bytes);
// Surrogates are left out: no UTF-8 text has them.
ExprPtr chars(std::vector<CodeRange> ranges);
ExprPtr sequence(std::vector<ExprPtr> parts);  // of none: the empty text
ExprPtr choice(std::vector<ExprPtr> parts);    // of none: no text at all
ExprPtr repeat(ExprPtr part, int min, int max);
ExprPtr optional(ExprPtr part);
ExprPtr call(int rule);

// Sorted and joined; `but` gives every character that is in none of them.
std::vector<CodeRange> normal_ranges(std::vector<CodeRange> ranges);
std::vector<CodeRange> all_but(std::vector<CodeRange> ranges);

struct Rule {
  std::string name;
  ExprPtr body;
};

struct Rules {
  std::vector<Rule> rules;
  int root = 0;

  int add(std::string name, ExprPtr body = nullptr);
};

}  // namespace hearth::text::grammar
