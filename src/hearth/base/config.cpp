#include "hearth/base/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/base/spelling.h"

namespace hearth {

Constraint at_least(double low) {
  return {
      .number = [low](double x) { return x >= low; },
      .word = nullptr,
      .must_be = fmt::format("at least {}", low),
      .choices = {},
  };
}

Constraint between(double low, double high) {
  return {
      .number = [low, high](double x) { return x >= low && x <= high; },
      .word = nullptr,
      .must_be = fmt::format("from {} to {}", low, high),
      .choices = {},
  };
}

Constraint positive() {
  return {
      .number = [](double x) { return x > 0; },
      .word = nullptr,
      .must_be = "positive",
      .choices = {},
  };
}

Constraint one_of(std::vector<std::string> choices) {
  Constraint c;
  c.must_be = fmt::format("one of {}", fmt::join(choices, ", "));
  c.word = [choices](std::string_view w) {
    return std::find(choices.begin(), choices.end(), w) != choices.end();
  };
  c.choices = std::move(choices);
  return c;
}

Constraint required(Constraint also) {
  also.required = true;
  return also;
}

Constraint may_change(Constraint also) {
  also.may_change = true;
  return also;
}

namespace detail {
namespace {

[[noreturn]] void reject(
    const YamlNode& node,
    const Field& field,
    std::string_view must_be
) {
  throw FormatError(
      fmt::format(
          "{}: {} must be {}, got '{}'{}", node.where(), field.path, must_be,
          node.kind == YamlNode::Kind::kScalar ? node.scalar : show_node(node),
          did_you_mean(node.scalar, field.constraint.choices)
      )
  );
}

void check_number(const YamlNode& node, const Field& field, double value) {
  const Constraint& c = field.constraint;
  if (c.number && !c.number(value)) reject(node, field, c.must_be);
}

// Reads numbers such as 3e-4 and 1_000_000; returns nothing for anything else.
std::optional<double> read_number(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar || node.quoted) return std::nullopt;
  std::string text = node.scalar;
  std::erase(text, '_');
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

template <class T>
std::string shortest(T value) {
  std::string text = fmt::format("{}", value);
  // 1e-05 is a word to YAML 1.1 readers that want a dot before the exponent.
  const auto e = text.find('e');
  if (e != std::string::npos && text.find('.') == std::string::npos) {
    text.insert(e, ".0");
  }
  return text;
}

}  // namespace

void wrong_type(
    const YamlNode& node,
    const Field& field,
    std::string_view wanted
) {
  reject(node, field, wanted);
}

void out_of_range(
    const YamlNode& node,
    const Field& field,
    double low,
    double high
) {
  reject(node, field, fmt::format("from {} to {}", low, high));
}

void set_bool(const YamlNode& node, const Field& field, bool& out) {
  const bool scalar = node.kind == YamlNode::Kind::kScalar && !node.quoted;
  if (scalar && (node.scalar == "true" || node.scalar == "True")) {
    out = true;
  } else if (scalar && (node.scalar == "false" || node.scalar == "False")) {
    out = false;
  } else {
    wrong_type(node, field, "true or false");
  }
}

void set_number(const YamlNode& node, const Field& field, double& out) {
  const auto value = read_number(node);
  if (!value) wrong_type(node, field, "a number");
  check_number(node, field, *value);
  out = *value;
}

void set_integer(const YamlNode& node, const Field& field, std::int64_t& out) {
  const auto value = read_number(node);
  if (!value || *value != std::floor(*value) || std::abs(*value) > 0x1p53) {
    wrong_type(node, field, "an integer");
  }
  check_number(node, field, *value);
  out = static_cast<std::int64_t>(*value);
}

void set_word(const YamlNode& node, const Field& field, std::string& out) {
  if (node.kind != YamlNode::Kind::kScalar) wrong_type(node, field, "a word");
  const Constraint& c = field.constraint;
  if (c.word && !c.word(node.scalar)) reject(node, field, c.must_be);
  out = node.scalar;
}

std::string show_number(float value) {
  return shortest(value);
}
std::string show_number(double value) {
  return shortest(value);
}

std::string show_word(const std::string& value) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./@%").find(c) != std::string_view::npos;
  };
  const bool starts_plain =
      !value.empty() && std::isalpha(static_cast<unsigned char>(value[0])) != 0;
  static constexpr std::string_view kReserved[] = {
      "true", "false", "True", "False", "null", "yes", "no", "on", "off"
  };
  const bool reserved =
      std::find(std::begin(kReserved), std::end(kReserved), value) !=
      std::end(kReserved);
  if (starts_plain && !reserved &&
      std::all_of(value.begin(), value.end(), plain)) {
    return value;
  }
  // Double quotes with JSON's escapes are valid YAML.
  std::string text = "\"";
  for (const char c : value) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (u < 0x20) {
      text += fmt::format("\\u{:04x}", u);
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string show_node(const YamlNode& value) {
  std::vector<std::string> parts;
  switch (value.kind) {
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kScalar:
      return value.quoted || !read_number(value) ? show_word(value.scalar)
                                                 : value.scalar;
    case YamlNode::Kind::kList:
      for (const auto& item : value.items) parts.push_back(show_node(item));
      return fmt::format("[{}]", fmt::join(parts, ", "));
    case YamlNode::Kind::kMap:
      for (const auto& [key, item] : value.entries) {
        parts.push_back(show_word(key) + ": " + show_node(item));
      }
      return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  return "null";
}

}  // namespace detail
}  // namespace hearth
