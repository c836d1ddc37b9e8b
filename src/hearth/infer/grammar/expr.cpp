#include "hearth/infer/grammar/expr.h"

#include <algorithm>
#include <utility>

namespace hearth::infer::grammar {
namespace {

std::shared_ptr<Expr> make(Expr::Kind kind) {
  auto made = std::make_shared<Expr>();
  made->kind = kind;
  return made;
}

// Parts of the same kind are taken in, so that a choice of choices is one.
ExprPtr join(Expr::Kind kind, std::vector<ExprPtr> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  auto made = make(kind);
  for (ExprPtr& part : parts) {
    if (part->kind == kind) {
      made->parts.insert(
          made->parts.end(), part->parts.begin(), part->parts.end()
      );
    } else {
      made->parts.push_back(std::move(part));
    }
  }
  return made;
}

}  // namespace

ExprPtr text(std::string_view bytes) {
  auto made = make(bytes.empty() ? Expr::Kind::sequence : Expr::Kind::bytes);
  made->bytes = bytes;
  return made;
}

ExprPtr chars(std::vector<CodeRange> ranges) {
  std::vector<CodeRange> whole;
  for (const CodeRange& range : normal_ranges(std::move(ranges))) {
    const CodeRange below{range.first, std::min<char32_t>(range.last, 0xD7FF)};
    const CodeRange above{
        std::max<char32_t>(range.first, 0xE000),
        std::min(range.last, kLastCodePoint)
    };
    if (below.first <= below.last) whole.push_back(below);
    if (above.first <= above.last) whole.push_back(above);
  }
  if (whole.empty()) return choice({});
  auto made = make(Expr::Kind::chars);
  made->chars = std::move(whole);
  return made;
}

ExprPtr sequence(std::vector<ExprPtr> parts) {
  return join(Expr::Kind::sequence, std::move(parts));
}

ExprPtr choice(std::vector<ExprPtr> parts) {
  return join(Expr::Kind::choice, std::move(parts));
}

ExprPtr repeat(ExprPtr part, int min, int max) {
  if (min == 1 && max == 1) return part;
  auto made = make(Expr::Kind::repeat);
  made->parts = {std::move(part)};
  made->min = min;
  made->max = max;
  return made;
}

ExprPtr optional(ExprPtr part) {
  return repeat(std::move(part), 0, 1);
}

ExprPtr call(int rule) {
  auto made = make(Expr::Kind::rule);
  made->rule = rule;
  return made;
}

std::vector<CodeRange> normal_ranges(std::vector<CodeRange> ranges) {
  std::sort(
      ranges.begin(), ranges.end(),
      [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; }
  );
  std::vector<CodeRange> joined;
  for (const CodeRange& range : ranges) {
    if (range.first > range.last) continue;
    if (!joined.empty() && range.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

std::vector<CodeRange> all_but(std::vector<CodeRange> ranges) {
  std::vector<CodeRange> rest;
  char32_t next = 0;
  for (const CodeRange& range : normal_ranges(std::move(ranges))) {
    if (range.first > next) rest.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) rest.push_back({next, kLastCodePoint});
  return rest;
}

int Rules::add(std::string name, ExprPtr body) {
  rules.push_back({std::move(name), std::move(body)});
  return static_cast<int>(rules.size()) - 1;
}

}  // namespace hearth::infer::grammar
