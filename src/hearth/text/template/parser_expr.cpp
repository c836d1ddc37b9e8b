// Expressions. Precedence, loosest first: if-else, or, and, not, comparison,
// + -, ~, * / // %, **, unary, postfix and filters.
#include <algorithm>
#include <array>

#include "hearth/text/template/meter.h"
#include "hearth/text/template/parser_impl.h"
#include "hearth/text/template/python.h"

namespace hearth::text::jinja {
namespace {

enum Level {
  kOr,
  kAnd,
  kNot,
  kCompare,
  kSum,
  kConcat,
  kProduct,
  kPower,
  kUnary
};

bool any_of(
    std::string_view text,
    std::initializer_list<std::string_view> set
) {
  for (const std::string_view item : set) {
    if (text == item) return true;
  }
  return false;
}

}  // namespace

// A chain like a+a+a... nests as deep as it is long without any recursion
// here, so the depth of the tree is checked where it grows.
void Parser::deepen(Expr& parent, const Expr& child) const {
  constexpr int kMaxDepth = 250;
  parent.depth = std::max(parent.depth, child.depth + 1);
  if (parent.depth > kMaxDepth) {
    throw SyntaxFailure{
        "expressions must nest at most " + std::to_string(kMaxDepth) + " deep",
        parent.offset, TemplateFault::kLimit
    };
  }
}

void Parser::adopt(Expr& parent, ExprPtr child) const {
  if (child != nullptr) deepen(parent, *child);
  parent.items.push_back(std::move(child));
}

ExprPtr Parser::expression(bool with_condition) {
  const Meter::Nested nested;
  const std::uint32_t offset = now().offset;
  ExprPtr expr = binary(kOr);
  while (with_condition && skip_name("if")) {
    ExprPtr condition = make(ExprKind::kCondition, offset);
    adopt(*condition, binary(kOr));
    adopt(*condition, std::move(expr));
    adopt(*condition, skip_name("else") ? expression() : nullptr);
    expr = std::move(condition);
  }
  return expr;
}

bool Parser::comparison(std::string& op) {
  const Token& token = now();
  if (token.kind == TokenKind::kOperator &&
      any_of(token.text, {"==", "!=", "<", "<=", ">", ">="})) {
    op = take().text;
    return true;
  }
  if (skip_name("in")) {
    op = "in";
    return true;
  }
  const bool negated = at_name("not") && ahead().kind == TokenKind::kName &&
                       ahead().text == "in";
  if (!negated) return false;
  take();
  take();
  op = "not in";
  return true;
}

// One call per operand, not per level, so that nesting costs little stack.
ExprPtr Parser::binary(int level) {
  const std::uint32_t offset = now().offset;
  ExprPtr left;
  if (level <= kNot && at_name("not")) {
    const Meter::Nested nested;
    take();
    left = make(ExprKind::kNot, offset);
    adopt(*left, binary(kNot));
    if (level == kNot) return left;
  } else {
    left = unary();
  }
  while (true) {
    const Token& token = now();
    const bool is_op = token.kind == TokenKind::kOperator;
    const std::uint32_t here = token.offset;
    ExprPtr made;
    int inner = kUnary;
    if (is_op && token.text == "**" && level <= kPower) {
      made = make(ExprKind::kBinary, here);
      inner = kUnary;
    } else if (is_op && any_of(token.text, {"*", "/", "//", "%"}) &&
               level <= kProduct) {
      made = make(ExprKind::kBinary, here);
      inner = kPower;
    } else if (is_op && token.text == "~" && level <= kConcat) {
      made = make(ExprKind::kConcat, here);
      adopt(*made, std::move(left));
      while (skip_operator("~")) adopt(*made, binary(kProduct));
      left = std::move(made);
      continue;
    } else if (is_op && any_of(token.text, {"+", "-"}) && level <= kSum) {
      made = make(ExprKind::kBinary, here);
      inner = kConcat;
    } else if (level <= kAnd && at_name("and")) {
      made = make(ExprKind::kAnd, here);
      inner = kNot;
    } else if (level <= kOr && at_name("or")) {
      made = make(ExprKind::kOr, here);
      inner = kAnd;
    } else if (std::string op; level <= kCompare && comparison(op)) {
      made = make(ExprKind::kCompare, here);
      adopt(*made, std::move(left));
      do {
        made->operators.push_back(op);
        adopt(*made, binary(kSum));
      } while (comparison(op));
      left = std::move(made);
      continue;
    } else {
      return left;
    }
    made->text = take().text;
    adopt(*made, std::move(left));
    adopt(*made, inner == kUnary ? unary() : binary(inner));
    left = std::move(made);
  }
}

ExprPtr Parser::unary(bool with_filters) {
  const std::uint32_t offset = now().offset;
  ExprPtr expr;
  if (at_operator("-") || at_operator("+")) {
    const Meter::Nested nested;
    const bool minus = take().text == "-";
    expr = make(minus ? ExprKind::kNegate : ExprKind::kPlus, offset);
    adopt(*expr, unary(false));
  } else {
    expr = primary();
  }
  expr = postfix(std::move(expr));
  return with_filters ? filters(std::move(expr)) : std::move(expr);
}

ExprPtr Parser::primary(bool with_namespace) {
  const Token& token = now();
  const std::uint32_t offset = token.offset;
  ExprPtr expr = make(ExprKind::kConstant, offset);
  switch (token.kind) {
    case TokenKind::kName: {
      const std::string name = take().text;
      if (any_of(name, {"true", "True", "false", "False"})) {
        expr->constant = any_of(name, {"true", "True"});
      } else if (!any_of(name, {"none", "None"})) {
        expr->kind = ExprKind::kName;
        expr->text = name;
        expr->id = id_of(name);
        if (with_namespace && skip_operator(".")) {
          expr->kind = ExprKind::kNamespace;
          expr->extra = expect_identifier();
        }
      }
      return expr;
    }
    case TokenKind::kString: {
      std::string text;
      while (now().kind == TokenKind::kString) text += take().text;
      expr->constant = std::move(text);
      return expr;
    }
    case TokenKind::kInteger:
      expr->constant = take().integer;
      return expr;
    case TokenKind::kFloat:
      expr->constant = take().number;
      return expr;
    default:
      break;
  }
  if (skip_operator("(")) {
    expr = tuple(false, true, true, false);
    expect_operator(")");
    return expr;
  }
  if (at_operator("[")) return list();
  if (at_operator("{")) return dict();
  fail("unexpected " + quote(describe(token)));
}

ExprPtr Parser::tuple(
    bool simple,
    bool with_condition,
    bool parenthesised,
    bool with_namespace
) {
  const Meter::Nested nested;
  ExprPtr made = make(ExprKind::kTuple, now().offset);
  const auto ends = [&] {
    const TokenKind kind = now().kind;
    return kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd ||
           at_operator(")");
  };
  bool is_tuple = false;
  while (true) {
    if (!made->items.empty()) expect_operator(",");
    if (ends()) break;
    adopt(*made, simple ? primary(with_namespace) : expression(with_condition));
    if (!at_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return made;
  if (!made->items.empty()) return std::move(made->items.front());
  if (!parenthesised) {
    fail("Expected an expression, got " + quote(describe(now())));
  }
  return made;
}

ExprPtr Parser::list() {
  ExprPtr made = make(ExprKind::kList, now().offset);
  expect_operator("[");
  while (!at_operator("]")) {
    if (!made->items.empty()) expect_operator(",");
    if (at_operator("]")) break;
    adopt(*made, expression());
  }
  expect_operator("]");
  return made;
}

ExprPtr Parser::dict() {
  ExprPtr made = make(ExprKind::kDict, now().offset);
  expect_operator("{");
  while (!at_operator("}")) {
    if (!made->items.empty()) expect_operator(",");
    if (at_operator("}")) break;
    adopt(*made, expression());
    expect_operator(":");
    adopt(*made, expression());
  }
  expect_operator("}");
  return made;
}

ExprPtr Parser::call(ExprPtr function) {
  ExprPtr made = make(ExprKind::kCall, now().offset);
  adopt(*made, std::move(function));
  call_arguments(*made);
  return made;
}

ExprPtr Parser::postfix(ExprPtr expr) {
  while (true) {
    if (at_operator(".") || at_operator("[")) {
      expr = subscript(std::move(expr));
    } else if (at_operator("(")) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr Parser::filters(ExprPtr expr) {
  while (true) {
    if (at_operator("|")) {
      expr = filter(std::move(expr), false);
    } else if (at_name("is")) {
      expr = test(std::move(expr));
    } else if (at_operator("(")) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr Parser::subscript(ExprPtr object) {
  const Token token = take();
  if (token.text == ".") {
    const Token name = take();
    if (name.kind == TokenKind::kName) {
      ExprPtr made = make(ExprKind::kAttribute, token.offset);
      made->text = name.text;
      adopt(*made, std::move(object));
      return made;
    }
    if (name.kind != TokenKind::kInteger) {
      fail_at("expected name or number", name.offset);
    }
    ExprPtr made = make(ExprKind::kItem, token.offset);
    adopt(*made, std::move(object));
    adopt(*made, make(ExprKind::kConstant, name.offset));
    made->items.back()->constant = name.integer;
    return made;
  }
  ExprPtr made = subscribed(std::move(object), token.offset);
  if (at_operator(",")) fail("subscripts must be one index or one slice");
  expect_operator("]");
  return made;
}

ExprPtr Parser::subscribed(ExprPtr object, std::uint32_t offset) {
  std::array<ExprPtr, 3> bounds;
  int colons = 0;
  for (int i = 0; i < 3; ++i) {
    if (!at_operator(":") && !at_operator("]") && !at_operator(",")) {
      bounds[static_cast<std::size_t>(i)] = expression();
    }
    if (i == 2 || !skip_operator(":")) break;
    ++colons;
  }
  ExprPtr made = make(colons == 0 ? ExprKind::kItem : ExprKind::kSlice, offset);
  adopt(*made, std::move(object));
  if (colons == 0) {
    if (bounds[0] == nullptr) fail("Expected an expression, got ']'");
    adopt(*made, std::move(bounds[0]));
  } else {
    for (ExprPtr& bound : bounds) adopt(*made, std::move(bound));
  }
  return made;
}

void Parser::call_arguments(Expr& call) {
  const std::uint32_t offset = now().offset;
  expect_operator("(");
  const auto ensure = [&](bool holds) {
    if (!holds) fail_at("invalid syntax for function call expression", offset);
  };
  bool comma = false;
  while (!at_operator(")")) {
    if (comma) {
      expect_operator(",");
      if (at_operator(")")) break;
    }
    const bool assigns = now().kind == TokenKind::kName &&
                         ahead().kind == TokenKind::kOperator &&
                         ahead().text == "=";
    if (skip_operator("*")) {
      ensure(call.star == nullptr && call.double_star == nullptr);
      call.star = expression();
      deepen(call, *call.star);
    } else if (skip_operator("**")) {
      ensure(call.double_star == nullptr);
      call.double_star = expression();
      deepen(call, *call.double_star);
    } else if (assigns) {
      ensure(call.double_star == nullptr);
      std::string name = take().text;
      take();
      call.named.emplace_back(std::move(name), expression());
      deepen(call, *call.named.back().second);
    } else {
      ensure(
          call.star == nullptr && call.double_star == nullptr &&
          call.named.empty()
      );
      adopt(call, expression());
    }
    comma = true;
  }
  expect_operator(")");
}

ExprPtr Parser::filter(ExprPtr expr, bool inline_start) {
  while (at_operator("|") || inline_start) {
    if (!inline_start) take();
    inline_start = false;
    ExprPtr made = make(ExprKind::kFilter, now().offset);
    made->text = expect_identifier();
    while (skip_operator(".")) made->text += "." + expect_identifier();
    adopt(*made, std::move(expr));
    if (at_operator("(")) call_arguments(*made);
    expr = std::move(made);
  }
  return expr;
}

ExprPtr Parser::test(ExprPtr expr) {
  const std::uint32_t offset = take().offset;
  const bool negated = skip_name("not");
  ExprPtr made = make(ExprKind::kTest, offset);
  made->text = expect_identifier();
  while (skip_operator(".")) made->text += "." + expect_identifier();
  adopt(*made, std::move(expr));
  const TokenKind kind = now().kind;
  const bool literal = kind == TokenKind::kName || kind == TokenKind::kString ||
                       kind == TokenKind::kInteger ||
                       kind == TokenKind::kFloat || at_operator("[") ||
                       at_operator("{");
  if (at_operator("(")) {
    call_arguments(*made);
  } else if (literal && !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) fail("You cannot chain multiple tests with is");
    adopt(*made, postfix(primary()));
  }
  if (!negated) return made;
  ExprPtr inverse = make(ExprKind::kNot, offset);
  adopt(*inverse, std::move(made));
  return inverse;
}

ExprPtr Parser::target(bool with_namespace) {
  ExprPtr made = tuple(true, true, false, with_namespace);
  const auto check = [&](const Expr& expr) {
    if (expr.kind == ExprKind::kName || expr.kind == ExprKind::kNamespace)
      return;
    const char* what = expr.kind == ExprKind::kConstant ? "const"
                       : expr.kind == ExprKind::kList   ? "list"
                       : expr.kind == ExprKind::kDict   ? "dict"
                                                        : "expression";
    fail_at("can't assign to " + quote(what), expr.offset);
  };
  if (made->kind != ExprKind::kTuple) {
    check(*made);
  } else {
    for (const ExprPtr& item : made->items) check(*item);
  }
  return made;
}

}  // namespace hearth::text::jinja
