#include "hearth/text/grammar/expr.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::text::grammar {
namespace {

std::shared_ptr<Expr> make(Expr::Kind kind) {
  auto made = std::make_shared<Expr>();
  made->kind = kind;
  return made;
}

// Facts about an expression that follow from those of its parts.
void count_parts(Expr& made) {
  std::size_t sum = 0;
  for (const ExprPtr& part : made.parts) {
    made.depth = std::max(made.depth, part->depth + 1);
    made.calls = made.calls || part->calls;
    sum = std::min(kHugeSize, sum + part->size);
  }
  made.size = std::max<std::size_t>(1, sum);
  if (made.depth > kMaxExprDepth) {
    throw UsageError(
        fmt::format(
            "[infer.grammar] expressions must nest at most {} deep",
            kMaxExprDepth
        )
    );
  }
}

// Parts of the same kind are taken in, so that a choice of choices is one.
std::vector<ExprPtr> flat(Expr::Kind kind, std::vector<ExprPtr> parts) {
  std::vector<ExprPtr> all;
  all.reserve(parts.size());
  for (ExprPtr& part : parts) {
    if (part->kind == kind) {
      all.insert(all.end(), part->parts.begin(), part->parts.end());
    } else {
      all.push_back(std::move(part));
    }
  }
  return all;
}

ExprPtr join(Expr::Kind kind, std::vector<ExprPtr> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  auto made = make(kind);
  made->parts = flat(kind, std::move(parts));
  count_parts(*made);
  return made;
}

}  // namespace

Expr::~Expr() {
  std::vector<ExprPtr> dying = std::move(parts);
  while (!dying.empty()) {
    const ExprPtr one = std::move(dying.back());
    dying.pop_back();
    if (!one || one.use_count() > 1 || one->parts.empty()) continue;
    // Nobody else holds this expression, so its parts may be taken before it is
    // destroyed.
    auto& below = const_cast<Expr&>(*one).parts;
    std::move(below.begin(), below.end(), std::back_inserter(dying));
    below.clear();
  }
}

ExprPtr text(std::string_view bytes) {
  auto made = make(bytes.empty() ? Expr::Kind::sequence : Expr::Kind::bytes);
  made->bytes = bytes;
  made->size = std::max<std::size_t>(1, bytes.size());
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
  if (made->chars.back().last >= 0x80) made->size = 6 + made->chars.size();
  return made;
}

ExprPtr sequence(std::vector<ExprPtr> parts) {
  return join(Expr::Kind::sequence, std::move(parts));
}

// Classes of characters that stand beside each other are one class.
ExprPtr choice(std::vector<ExprPtr> parts) {
  std::vector<ExprPtr> all = flat(Expr::Kind::choice, std::move(parts));
  const auto is_class = [](const ExprPtr& part) {
    return part->kind == Expr::Kind::chars;
  };
  if (std::count_if(all.begin(), all.end(), is_class) > 1) {
    std::vector<CodeRange> ranges;
    for (const ExprPtr& part : all) {
      ranges.insert(ranges.end(), part->chars.begin(), part->chars.end());
    }
    std::erase_if(all, is_class);
    all.push_back(chars(std::move(ranges)));
  }
  return join(Expr::Kind::choice, std::move(all));
}

ExprPtr repeat(ExprPtr part, int min, int max) {
  if (min == 1 && max == 1) return part;
  if (max == 0) return sequence({});
  if (part->kind == Expr::Kind::repeat && part->min == 0) {
    // (x?){2,9} is x{0,9}, and (x*){2,9} is x*.
    if (part->max == 1) return repeat(part->parts.front(), 0, max);
    if (part->max == kNoLimit) return part;
  }
  auto made = make(Expr::Kind::repeat);
  made->parts = {std::move(part)};
  made->min = min;
  made->max = max;
  count_parts(*made);
  const auto times = static_cast<std::size_t>(std::max({min, max, 1}));
  made->size = std::min(kHugeSize, made->size * times + 1);
  return made;
}

ExprPtr optional(ExprPtr part) {
  return repeat(std::move(part), 0, 1);
}

ExprPtr call(int rule) {
  auto made = make(Expr::Kind::rule);
  made->rule = rule;
  made->calls = true;
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

}  // namespace hearth::text::grammar
