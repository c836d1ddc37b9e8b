// "..." % arguments and "...".format(...).
#include <cmath>
#include <cstdio>

#include "hearth/text/template/attributes.h"
#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"
#include "hearth/text/template/text.h"

namespace hearth::text::jinja {
namespace {

struct Conversion {
  std::string flags;
  int width = 0;
  int precision = -1;
  char type = 's';
};

// Padded to the width, counting code points.
std::string padded(std::string text, const Conversion& how) {
  const std::size_t have = code_point_count(text);
  const auto want = static_cast<std::size_t>(how.width);
  if (have >= want) return text;
  const std::string pad(want - have, ' ');
  const bool left = how.flags.find('-') != std::string::npos;
  return left ? text + pad : pad + text;
}

std::string number_text(const Value& value, const Conversion& how) {
  if (!value.is_number()) {
    const bool real = how.type == 'f' || how.type == 'e' || how.type == 'g';
    if (real)
      fail_type("must be real number, not " + std::string(type_name(value)));
    fail_type(
        std::string("%") + how.type +
        " format: a real number is required, not " +
        std::string(type_name(value))
    );
  }
  const bool whole =
      how.type == 'd' || how.type == 'x' || how.type == 'X' || how.type == 'o';
  // The format is built from checked parts, never from the template's text.
  const std::string head = "%" + how.flags + "*.*";
  char buffer[512];
  int size = 0;
  if (whole) {
    if (value.is_float() && !(std::fabs(value.number()) < 9e18)) {
      fail_value("cannot convert float to integer");
    }
    const long long integer = value.is_float()
                                  ? static_cast<long long>(value.number())
                                  : static_cast<long long>(value.integer());
    size = std::snprintf(
        buffer, sizeof buffer, (head + "ll" + how.type).c_str(), how.width,
        how.precision, integer
    );
  } else {
    size = std::snprintf(
        buffer, sizeof buffer, (head + how.type).c_str(), how.width,
        how.precision, value.number()
    );
  }
  if (size < 0 || size >= static_cast<int>(sizeof buffer)) {
    fail_value("formatted numbers must stay under 512 characters");
  }
  return {buffer, static_cast<std::size_t>(size)};
}

int read_number(std::string_view format, std::size_t& at) {
  int number = 0;
  while (at < format.size() && format[at] >= '0' && format[at] <= '9') {
    number = number * 10 + (format[at++] - '0');
    if (number > 400) fail_value("format widths must be at most 400");
  }
  return number;
}

Conversion read_conversion(std::string_view format, std::size_t& at) {
  Conversion how;
  while (at < format.size() &&
         std::string_view("-+ #0").find(format[at]) != std::string_view::npos) {
    if (how.flags.find(format[at]) == std::string::npos) {
      how.flags += format[at];
    }
    ++at;
  }
  how.width = read_number(format, at);
  if (at < format.size() && format[at] == '.') {
    how.precision = read_number(format, ++at);
  }
  if (at >= format.size()) fail_value("incomplete format");
  how.type = format[at++];
  if (how.type == 'i' || how.type == 'u') how.type = 'd';
  return how;
}

std::string convert(const Value& value, const Conversion& how) {
  if (how.type == 'c' && value.is_string()) {
    if (code_point_count(value.text()) != 1) {
      fail_type("%c requires int or char");
    }
    return padded(value.text(), how);
  }
  if (how.type == 's' || how.type == 'r') {
    std::string text = how.type == 's' ? str(value) : repr(value);
    if (how.precision >= 0) {
      text.resize(byte_offset(text, static_cast<std::size_t>(how.precision)));
    }
    return padded(std::move(text), how);
  }
  if (std::string_view("dxXofFeEgG").find(how.type) == std::string_view::npos) {
    fail_value(std::string("unsupported format character '") + how.type + "'");
  }
  return number_text(value, how);
}

// The value a replacement field like `0.name[key]` stands for.
Value field_value(
    std::string_view field,
    const Arguments& arguments,
    std::size_t& automatic
) {
  const std::size_t end = field.find_first_of(".[");
  const std::string_view first = field.substr(0, end);
  Value value;
  std::size_t at = 0;
  const bool numbered =
      !first.empty() && first.find_first_not_of("0123456789") == first.npos;
  if (first.empty() || numbered) {
    const auto index = first.empty()
                           ? automatic++
                           : static_cast<std::size_t>(read_number(first, at));
    if (index >= arguments.positional.size()) {
      fail_value(
          "Replacement index " + std::to_string(index) +
          " out of range for positional args tuple"
      );
    }
    value = arguments.positional[index];
  } else {
    const Value* found = nullptr;
    for (const auto& [name, item] : arguments.named) {
      if (name == first) found = &item;
    }
    if (found == nullptr) fail_value(quote(first));
    value = *found;
  }
  field = end == field.npos ? std::string_view() : field.substr(end);
  while (!field.empty()) {
    const bool element = field.front() == '[';
    field.remove_prefix(1);
    const std::size_t stop =
        element ? field.find(']') : field.find_first_of(".[");
    const std::string_view name = field.substr(0, stop);
    value = element ? get_item(value, Value(name)) : get_attribute(value, name);
    field = stop == field.npos ? std::string_view()
                               : field.substr(stop + (element ? 1 : 0));
  }
  return value;
}

}  // namespace

std::string percent_format(std::string_view format, const Value& arguments) {
  const bool tuple = arguments.is_kind(SequenceKind::kTuple);
  std::size_t used = 0;
  std::string out;
  const auto next = [&]() -> Value {
    if (!tuple && used++ == 0) return arguments;
    if (tuple && used < arguments.sequence().items.size()) {
      return arguments.sequence().items[used++];
    }
    fail_type("not enough arguments for format string");
  };
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    ++at;
    if (at < format.size() && format[at] == '%') {
      out += format[at++];
      continue;
    }
    Value named;
    bool by_name = false;
    if (at < format.size() && format[at] == '(') {
      const std::size_t close = format.find(')', at);
      if (close == format.npos) fail_value("incomplete format key");
      if (!arguments.is_dict()) fail_type("format requires a mapping");
      const auto key = format.substr(at + 1, close - at - 1);
      const Value* found = arguments.dict().find(key);
      if (found == nullptr) fail_value(quote(key));
      named = *found;
      by_name = true;
      at = close + 1;
      used = 1;
    }
    const Conversion how = read_conversion(format, at);
    out += convert(by_name ? named : next(), how);
    Meter::allocate(out.size() / 8);
  }
  const std::size_t given = tuple ? arguments.sequence().items.size() : 1;
  if (used < given && !arguments.is_dict()) {
    fail_type("not all arguments converted during string formatting");
  }
  return out;
}

std::string brace_format(std::string_view format, const Arguments& arguments) {
  std::string out;
  std::size_t automatic = 0;
  for (std::size_t at = 0; at < format.size();) {
    const char c = format[at++];
    const bool doubled = at < format.size() && format[at] == c;
    if (c != '{' && c != '}') {
      out += c;
    } else if (doubled) {
      out += c;
      ++at;
    } else if (c == '}') {
      fail_value("Single '}' encountered in format string");
    } else {
      const std::size_t close = format.find('}', at);
      if (close == format.npos) fail_value("expected '}' before end of string");
      std::string_view field = format.substr(at, close - at);
      at = close + 1;
      if (field.find(':') != field.npos) {
        fail_value("format specifications are not supported in templates");
      }
      const bool as_repr =
          field.size() > 1 && field.substr(field.size() - 2) == "!r";
      const bool as_str =
          field.size() > 1 && field.substr(field.size() - 2) == "!s";
      if (as_repr || as_str) field.remove_suffix(2);
      const Value value = field_value(field, arguments, automatic);
      out += as_repr ? repr(value) : str(value);
    }
  }
  Meter::allocate(out.size());
  return out;
}

}  // namespace hearth::text::jinja
