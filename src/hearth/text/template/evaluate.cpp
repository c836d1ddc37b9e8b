// Expressions.
#include "hearth/text/template/attributes.h"
#include "hearth/text/template/failure.h"
#include "hearth/text/template/interpreter_impl.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"

namespace hearth::text::jinja {

Value Interpreter::evaluate(const Expr& expr) {
  const Meter::Nested nested;
  Meter::work();
  const auto item = [&](std::size_t i) { return evaluate(*expr.items[i]); };
  switch (expr.kind) {
    case ExprKind::kConstant:
      return expr.constant;
    case ExprKind::kNamespace:
    case ExprKind::kName:
      return evaluate_name(expr);
    case ExprKind::kList:
    case ExprKind::kTuple:
      return evaluate_sequence(expr);
    case ExprKind::kDict:
      return evaluate_dict(expr);
    case ExprKind::kAttribute: {
      const Value object = item(0);
      at(expr);
      return get_attribute(object, expr.text);
    }
    case ExprKind::kItem: {
      const Value object = item(0), key = item(1);
      at(expr);
      return get_item(object, key);
    }
    case ExprKind::kSlice:
      return evaluate_slice(expr);
    case ExprKind::kCall:
      return evaluate_call(expr);
    case ExprKind::kFilter:
      return evaluate_filter(expr, item(0));
    case ExprKind::kTest: {
      const Value value = item(0);
      Arguments arguments = evaluate_arguments(expr, 1);
      at(expr);
      return apply_test(*this, expr.text, value, arguments);
    }
    case ExprKind::kBinary: {
      const Value left = item(0), right = item(1);
      at(expr);
      return arithmetic(expr.text, left, right);
    }
    case ExprKind::kConcat:
      return evaluate_concat(expr);
    case ExprKind::kCompare:
      return evaluate_compare(expr);
    case ExprKind::kAnd: {
      Value left = item(0);
      return truthy(left) ? item(1) : left;
    }
    case ExprKind::kOr: {
      Value left = item(0);
      return truthy(left) ? left : item(1);
    }
    case ExprKind::kNot:
      return !truthy(item(0));
    case ExprKind::kNegate: {
      const Value value = item(0);
      at(expr);
      return negate(value);
    }
    case ExprKind::kPlus: {
      const Value value = item(0);
      at(expr);
      return value.is_bool() ? Value(value.integer()) : value;
    }
    case ExprKind::kCondition:
      return evaluate_condition(expr);
  }
  return {};
}

Value Interpreter::evaluate_name(const Expr& expr) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    Meter::work(scope->variables.size() / 16);
    if (const Value* found = scope->find(expr.id)) return *found;
  }
  const auto id = static_cast<std::size_t>(expr.id);
  if (in_context_[id]) return context_[id];
  return Value::undefined(expr.text);
}

Value Interpreter::evaluate_sequence(const Expr& expr) {
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const ExprPtr& item : expr.items) items.push_back(evaluate(*item));
  Meter::allocate(items.size() * sizeof(Value));
  at(expr);
  return expr.kind == ExprKind::kList ? Value::list(std::move(items))
                                      : Value::tuple(std::move(items));
}

Value Interpreter::evaluate_dict(const Expr& expr) {
  Dict made;
  for (std::size_t i = 0; i + 1 < expr.items.size(); i += 2) {
    Value key = evaluate(*expr.items[i]);
    Value value = evaluate(*expr.items[i + 1]);
    at(expr);
    check_hashable(key);
    Meter::work(made.entries.size() / 8);
    Meter::allocate(2 * sizeof(Value));
    made.set(std::move(key), std::move(value));
  }
  at(expr);
  return Value::dict(std::move(made));
}

Value Interpreter::evaluate_slice(const Expr& expr) {
  const Value object = evaluate(*expr.items[0]);
  Value bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const ExprPtr& bound = expr.items[i + 1];
    if (bound != nullptr) bounds[i] = evaluate(*bound);
  }
  at(expr);
  return get_slice(object, bounds[0], bounds[1], bounds[2]);
}

Arguments Interpreter::evaluate_arguments(const Expr& expr, std::size_t from) {
  Arguments made;
  made.positional.reserve(expr.items.size() - from);
  for (std::size_t i = from; i < expr.items.size(); ++i) {
    made.positional.push_back(evaluate(*expr.items[i]));
  }
  for (const auto& [name, value] : expr.named) {
    made.named.emplace_back(name, evaluate(*value));
  }
  if (expr.star != nullptr) {
    for (Value& value : items_of(evaluate(*expr.star))) {
      made.positional.push_back(std::move(value));
    }
  }
  if (expr.double_star != nullptr) {
    const Value more = evaluate(*expr.double_star);
    at(expr);
    if (!more.is_dict()) {
      fail_type(
          "argument after ** must be a mapping, not " +
          std::string(type_name(more))
      );
    }
    for (const auto& [name, value] : more.dict().entries) {
      if (!name.is_string()) fail_type("keywords must be strings");
      made.named.emplace_back(name.text(), value);
    }
  }
  return made;
}

Value Interpreter::evaluate_call(const Expr& expr) {
  const Value function = evaluate(*expr.items[0]);
  Arguments arguments = evaluate_arguments(expr, 1);
  at(expr);
  return call_value(*this, function, arguments);
}

// The filters of a block, which take its text at their innermost end.
Value Interpreter::filter_text(const Expr& expr, const Value& text) {
  const Meter::Nested nested;
  const Expr* inner = expr.items[0].get();
  return evaluate_filter(expr, inner ? filter_text(*inner, text) : text);
}

Value Interpreter::evaluate_filter(const Expr& expr, const Value& value) {
  Arguments arguments = evaluate_arguments(expr, 1);
  at(expr);
  return apply_filter(*this, expr.text, value, arguments);
}

Value Interpreter::evaluate_concat(const Expr& expr) {
  std::string out;
  for (const ExprPtr& item : expr.items) {
    const Value value = evaluate(*item);
    if (value.is_string()) {
      Meter::allocate(value.text().size());
      out += value.text();
    } else {
      out += str(value);
    }
  }
  return out;
}

bool Interpreter::evaluate_compare(const Expr& expr) {
  Value left = evaluate(*expr.items[0]);
  for (std::size_t i = 0; i < expr.operators.size(); ++i) {
    Value right = evaluate(*expr.items[i + 1]);
    const std::string& op = expr.operators[i];
    at(expr);
    bool holds = false;
    if (op == "==" || op == "!=") {
      holds = equal(left, right) == (op == "==");
    } else if (op == "in" || op == "not in") {
      holds = contains(right, left) == (op == "in");
    } else {
      holds = ordered(op, left, right);
    }
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate_condition(const Expr& expr) {
  if (truthy(evaluate(*expr.items[0]))) return evaluate(*expr.items[1]);
  if (expr.items[2] != nullptr) return evaluate(*expr.items[2]);
  return Value::undefined_hint(
      "the inline if-expression on line " +
      std::to_string(position_of(tree_, expr.offset).first) +
      " evaluated to false and no else section was defined."
  );
}

}  // namespace hearth::text::jinja
