// Python's operators on template values. Integers are 64 bits wide here; an
// operation that needs more is refused rather than rounded.
#include <cmath>

#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"

namespace hearth::text::jinja {
namespace {

[[noreturn]] void unsupported(
    std::string_view op,
    const Value& a,
    const Value& b
) {
  const std::string shown = op == "**" ? "** or pow()" : std::string(op);
  fail_type(
      "unsupported operand type(s) for " + shown + ": " + quote(type_name(a)) +
      " and " + quote(type_name(b))
  );
}

// By reference, so that it is read after the operation that sets it.
std::int64_t fitting(bool overflowed, const std::int64_t& value) {
  if (overflowed) {
    throw Failure{TemplateFault::kLimit, "integers must fit 64 bits"};
  }
  return value;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == -1) {
    std::int64_t out = 0;
    return fitting(__builtin_sub_overflow(std::int64_t{0}, a, &out), out);
  }
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Value power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) {
      fail_value("0.0 cannot be raised to a negative power");
    }
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  std::int64_t out = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    out = fitting(__builtin_mul_overflow(out, base, &out), out);
  }
  return out;
}

Value integer_op(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (op == "+") return fitting(__builtin_add_overflow(a, b, &out), out);
  if (op == "-") return fitting(__builtin_sub_overflow(a, b, &out), out);
  if (op == "*") return fitting(__builtin_mul_overflow(a, b, &out), out);
  if (op == "**") return power(a, b);
  if (b == 0) {
    fail_value(
        op == "/"   ? "division by zero"
        : op == "%" ? "integer modulo by zero"
                    : "integer division or modulo by zero"
    );
  }
  if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
  return op == "%" ? modulo(a, b) : floor_divide(a, b);
}

Value float_op(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return std::pow(a, b);
  if (b == 0) {
    fail_value(
        op == "/"    ? "float division by zero"
        : op == "//" ? "float floor division by zero"
                     : "float modulo"
    );
  }
  if (op == "/") return a / b;
  double r = std::fmod(a, b);
  if (r != 0 && (r < 0) != (b < 0)) r += b;
  if (op == "%") return r;
  return std::round((a - r) / b);
}

bool is_list(const Value& v) {
  return v.is_kind(SequenceKind::kList);
}
bool is_tuple(const Value& v) {
  return v.is_kind(SequenceKind::kTuple);
}

Value concatenate(const Value& a, const Value& b) {
  const std::vector<Value>& left = a.sequence().items;
  const std::vector<Value>& right = b.sequence().items;
  Meter::work(left.size() + right.size());
  Meter::allocate((left.size() + right.size()) * sizeof(Value));
  std::vector<Value> items = left;
  items.insert(items.end(), right.begin(), right.end());
  return Value::sequence(a.sequence().kind, std::move(items));
}

Value add(const Value& a, const Value& b) {
  if (a.is_string()) {
    if (!b.is_string()) {
      fail_type(
          "can only concatenate str (not \"" + std::string(type_name(b)) +
          "\") to str"
      );
    }
    Meter::allocate(a.text().size() + b.text().size());
    std::string out;
    out.reserve(a.text().size() + b.text().size());
    return out.append(a.text()).append(b.text());
  }
  if (is_list(a) || is_tuple(a)) {
    if (!b.is_kind(a.sequence().kind)) {
      const std::string kind(type_name(a));
      fail_type(
          "can only concatenate " + kind + " (not \"" +
          std::string(type_name(b)) + "\") to " + kind
      );
    }
    return concatenate(a, b);
  }
  unsupported("+", a, b);
}

Value repeat(const Value& value, std::int64_t count) {
  if (count < 0) count = 0;
  const auto n = static_cast<std::size_t>(count);
  const std::size_t unit = value.is_string()
                               ? value.text().size()
                               : value.sequence().items.size() * sizeof(Value);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(unit, n, &bytes)) bytes = SIZE_MAX;
  Meter::allocate(bytes);
  Meter::work(bytes / 64);
  if (value.is_string()) {
    std::string out;
    out.reserve(bytes);
    for (std::size_t i = 0; unit != 0 && i < n; ++i) out += value.text();
    return out;
  }
  std::vector<Value> items;
  const std::vector<Value>& source = value.sequence().items;
  for (std::size_t i = 0; unit != 0 && i < n; ++i) {
    items.insert(items.end(), source.begin(), source.end());
  }
  return Value::sequence(value.sequence().kind, std::move(items));
}

}  // namespace

Value arithmetic(std::string_view op, const Value& a, const Value& b) {
  if (op == "%" && a.is_string()) return percent_format(a.text(), b);
  require_defined(a);
  require_defined(b);
  if (a.is_integral() && b.is_integral()) {
    return integer_op(op, a.integer(), b.integer());
  }
  if (a.is_number() && b.is_number()) {
    return float_op(op, a.number(), b.number());
  }
  if (op == "+") return add(a, b);
  if (op == "*") {
    const auto repeats = [](const Value& v) {
      return v.is_string() || is_list(v) || is_tuple(v);
    };
    for (const auto& [text, count] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      if (!repeats(*text)) continue;
      if (count->is_integral()) return repeat(*text, count->integer());
      fail_type(
          "can't multiply sequence by non-int of type " +
          quote(type_name(*count))
      );
    }
  }
  unsupported(op, a, b);
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is_float()) return -value.number();
  if (!value.is_integral()) {
    fail_type("bad operand type for unary -: " + quote(type_name(value)));
  }
  return integer_op("-", 0, value.integer());
}

}  // namespace hearth::text::jinja
