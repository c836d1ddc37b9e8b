// What may follow `is`.
#include <algorithm>

#include "hearth/text/template/failure.h"
#include "hearth/text/template/python.h"
#include "hearth/text/template/runtime_impl.h"
#include "hearth/text/template/text.h"

namespace hearth::text::jinja {
namespace {

using Unary = bool (*)(const Value&);
using Binary = bool (*)(const Value&, const Value&);

std::int64_t modulo(const Value& value, std::int64_t by) {
  return static_cast<std::int64_t>(arithmetic("%", value, Value(by)).number());
}

bool is_sequence(const Value& v) {
  return v.is_string() || v.is_dict() || v.is_undefined() ||
         v.is_kind(SequenceKind::kList) || v.is_kind(SequenceKind::kTuple) ||
         v.is_kind(SequenceKind::kRange);
}

// str.islower and str.isupper of the value's text.
bool cased(const Value& v, bool upper) {
  const std::string text = str(v);
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (upper ? is_lower(c) : is_upper(c)) return false;
    any |= upper ? is_upper(c) : is_lower(c);
  }
  return any;
}

struct UnaryEntry {
  std::string_view name;
  Unary call;
};
struct BinaryEntry {
  std::string_view name;
  Binary call;
};

const UnaryEntry kUnary[] = {
    {"defined", [](const Value& v) { return !v.is_undefined(); }},
    {"undefined", [](const Value& v) { return v.is_undefined(); }},
    {"none", [](const Value& v) { return v.is_none(); }},
    {"string", [](const Value& v) { return v.is_string(); }},
    {"mapping", [](const Value& v) { return v.is_dict(); }},
    {"iterable", [](const Value& v) { return is_iterable(v); }},
    {"sequence", is_sequence},
    {"boolean", [](const Value& v) { return v.is_bool(); }},
    {"true", [](const Value& v) { return v.is_bool() && v.boolean(); }},
    {"false", [](const Value& v) { return v.is_bool() && !v.boolean(); }},
    {"integer", [](const Value& v) { return v.is_int(); }},
    {"float", [](const Value& v) { return v.is_float(); }},
    {"number", [](const Value& v) { return v.is_number(); }},
    {"odd", [](const Value& v) { return modulo(v, 2) == 1; }},
    {"even", [](const Value& v) { return modulo(v, 2) == 0; }},
    {"callable",
     [](const Value& v) {
       return v.is_undefined() || (v.is_object() && v.object().callable());
     }},
    {"lower", [](const Value& v) { return cased(v, false); }},
    {"upper", [](const Value& v) { return cased(v, true); }},
    {"escaped", [](const Value&) { return false; }},
    {"filter", [](const Value& v) {
       return v.is_string() && (find_text_filter(v.text()) != nullptr ||
                                find_sequence_filter(v.text()) != nullptr);
     }},
};

const BinaryEntry kBinary[] = {
    {"equalto", equal},
    {"eq", equal},
    {"==", equal},
    {"ne", [](const Value& a, const Value& b) { return !equal(a, b); }},
    {"!=", [](const Value& a, const Value& b) { return !equal(a, b); }},
    {"in", [](const Value& a, const Value& b) { return contains(b, a); }},
    {"sameas", [](const Value& a, const Value& b) { return a.same(b); }},
    {"divisibleby",
     [](const Value& a, const Value& b) {
       return !truthy(arithmetic("%", a, b));
     }},
    {"lt", [](const Value& a, const Value& b) { return ordered("<", a, b); }},
    {"lessthan",
     [](const Value& a, const Value& b) { return ordered("<", a, b); }},
    {"<", [](const Value& a, const Value& b) { return ordered("<", a, b); }},
    {"le", [](const Value& a, const Value& b) { return ordered("<=", a, b); }},
    {"<=", [](const Value& a, const Value& b) { return ordered("<=", a, b); }},
    {"gt", [](const Value& a, const Value& b) { return ordered(">", a, b); }},
    {"greaterthan",
     [](const Value& a, const Value& b) { return ordered(">", a, b); }},
    {">", [](const Value& a, const Value& b) { return ordered(">", a, b); }},
    {"ge", [](const Value& a, const Value& b) { return ordered(">=", a, b); }},
    {">=", [](const Value& a, const Value& b) { return ordered(">=", a, b); }},
};

[[noreturn]] void wrong_count(std::string_view name, std::size_t given) {
  fail_type(
      "test_" + std::string(name) +
      "() takes another number of arguments than " + std::to_string(given)
  );
}

}  // namespace

bool apply_test(
    Runtime&,
    std::string_view name,
    const Value& value,
    Arguments& arguments
) {
  const std::size_t given =
      arguments.positional.size() + arguments.named.size();
  const auto unary = std::ranges::find(kUnary, name, &UnaryEntry::name);
  if (unary != std::end(kUnary)) {
    if (given != 0) wrong_count(name, given);
    return unary->call(value);
  }
  const auto binary = std::ranges::find(kBinary, name, &BinaryEntry::name);
  if (binary != std::end(kBinary)) {
    if (given != 1) wrong_count(name, given);
    return binary->call(
        value, arguments.positional.empty() ? arguments.named.front().second
                                            : arguments.positional.front()
    );
  }
  throw Failure{TemplateFault::kSyntax, "No test named " + quote(name) + "."};
}

}  // namespace hearth::text::jinja
