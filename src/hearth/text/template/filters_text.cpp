// Filters that make text and numbers.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "hearth/base/html.h"
#include "hearth/text/template/attributes.h"
#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"
#include "hearth/text/template/runtime_impl.h"
#include "hearth/text/template/text.h"

namespace hearth::text::jinja {
namespace {

// Calls a str method on the value's text.
Value method(
    Runtime& runtime,
    const Value& value,
    std::string_view name,
    Arguments& arguments
) {
  return bind_method(Value(str(value)), name)
      ->object()
      .call(runtime, arguments);
}

template <std::string (*transform)(std::string_view)>
Value transformed(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("filter", "", arguments);
  const std::string text = str(value);
  Meter::work(text.size() / 64);
  Meter::allocate(text.size() * 6);
  return transform(text);
}

Value trim(Runtime& runtime, const Value& value, Arguments& arguments) {
  return method(runtime, value, "strip", arguments);
}

Value replace(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Parameters p("do_replace", "old new count", arguments);
  Arguments call;
  call.positional = {str(p.at(0)), str(p.at(1)), p.get(2, -1)};
  if (call.positional[2].is_none()) call.positional[2] = -1;
  return method(runtime, value, "replace", call);
}

// Each word's first character upper, the rest lower; words end at white
// space and at - ( { [ <.
Value title(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("title", "", arguments);
  const std::string text = str(value);
  std::string out;
  std::size_t word = 0;
  const auto flush = [&](std::size_t end) {
    const std::string_view part =
        std::string_view(text).substr(word, end - word);
    const std::size_t first = byte_offset(part, 1);
    out += to_upper(part.substr(0, first)) + to_lower(part.substr(first));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = next_code_point(text, at);
    const bool ends =
        is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (!ends) continue;
    flush(start);
    out += text.substr(start, at - start);
    word = at;
  }
  flush(text.size());
  Meter::allocate(out.size());
  return out;
}

Value center(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Parameters p("center", "width", arguments);
  Arguments call;
  call.positional = {p.get(0, 80)};
  return method(runtime, value, "center", call);
}

Value indent(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("indent", "width first blank", arguments);
  const Value width = p.get(0, 4);
  const std::string margin =
      width.is_string()
          ? width.text()
          : arithmetic("*", Value(" "), Value(p.integer(0, 4))).text();
  const std::string text = arithmetic("+", value, Value("\n")).text();
  const auto lines = split_lines(text, false);
  std::string out;
  const bool blank = truthy(p.get(2, false));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i == 0 ? truthy(p.get(1, false)) : blank || !lines[i].empty()) {
      Meter::allocate(margin.size());
      out += margin;
    }
    out += lines[i];
  }
  Meter::work(lines.size());
  Meter::allocate(text.size());
  return out;
}

Value truncate(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("truncate", "length killwords end leeway", arguments);
  const std::int64_t size = p.integer(0, 255);
  const std::string end = p.has(2) ? p.text(2) : "...";
  const std::int64_t leeway = p.get(3, Value()).is_none() ? 5 : p.integer(3, 5);
  const auto end_size = static_cast<std::int64_t>(code_point_count(end));
  if (size < end_size) {
    fail_value(
        "expected length >= " + std::to_string(end_size) + ", got " +
        std::to_string(size)
    );
  }
  if (length(value) <= size + leeway) return value;
  std::string cut =
      get_slice(value, Value(), Value(size - end_size), Value()).text();
  if (!truthy(p.get(1, false))) {
    const std::size_t space = cut.rfind(' ');
    if (space != std::string::npos) cut.resize(space);
  }
  return cut + end;
}

Value wordcount(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("wordcount", "", arguments);
  const std::string text = str(value);
  Meter::work(text.size() / 8);
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool member = is_alpha(c) || is_numeric(c) || c == '_';
    words += member && !inside;
    inside = member;
  }
  return words;
}

Value format(Runtime&, const Value& value, Arguments& arguments) {
  if (!arguments.named.empty()) {
    Dict dict;
    for (auto& [name, item] : arguments.named) dict.set(name, item);
    return percent_format(str(value), Value::dict(std::move(dict)));
  }
  return percent_format(str(value), Value::tuple(arguments.positional));
}

Value string(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("string", "", arguments);
  return value.is_string() ? value : Value(str(value));
}

Value escape(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("escape", "", arguments);
  std::string out = html_escaped(str(value));
  Meter::allocate(out.size());
  return out;
}

// A float from text as Python reads it, without underscores.
std::optional<double> read_float(const Value& value) {
  if (value.is_number()) return value.number();
  if (!value.is_string()) return std::nullopt;
  std::string_view text = strip(value.text(), Side::kBoth);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

Value integer(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("do_int", "default base", arguments);
  require_defined(value);
  if (value.is_integral()) return value.integer();
  if (value.is_string()) {
    std::string_view text = strip(value.text(), Side::kBoth);
    if (text.starts_with('+')) text.remove_prefix(1);
    std::int64_t number = 0;
    const auto base = static_cast<int>(p.integer(1, 10));
    if (base < 2 || base > 36) fail_value("int() base must be >= 2 and <= 36");
    const auto read =
        std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (read.ec == std::errc{} && read.ptr == text.data() + text.size()) {
      return number;
    }
  }
  const auto real = read_float(value);
  if (!real || !(std::fabs(*real) < 9.2e18)) return p.get(0, 0);
  return static_cast<std::int64_t>(*real);
}

Value real(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("do_float", "default", arguments);
  require_defined(value);
  const auto number = read_float(value);
  return number ? Value(*number) : p.get(0, 0.0);
}

Value absolute(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("abs", "", arguments);
  require_defined(value);
  if (!value.is_number()) {
    fail_type("bad operand type for abs(): " + quote(type_name(value)));
  }
  if (value.is_float()) return std::fabs(value.number());
  return value.integer() < 0 ? negate(value) : Value(value.integer());
}

Value round_filter(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("round", "precision method", arguments);
  require_defined(value);
  const std::string way = p.has(1) ? p.text(1) : "common";
  if (!value.is_number()) {
    fail_type(
        "type " + std::string(type_name(value)) +
        " doesn't define __round__ method"
    );
  }
  const std::int64_t precision = p.integer(0, 0);
  if (precision < -300 || precision > 300) {
    fail_value("round() precision must be within 300");
  }
  if (way == "ceil" || way == "floor") {
    const double scale = std::pow(10.0, static_cast<double>(precision));
    const double scaled = value.number() * scale;
    return (way == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
  }
  if (way != "common") fail_value("method must be common, ceil or floor");
  if (value.is_integral() && precision >= 0) return value.integer();
  // Correctly rounded decimal, half to even, as Python does.
  char text[700];
  const int digits = static_cast<int>(std::max<std::int64_t>(precision, 0));
  std::snprintf(text, sizeof text, "%.*f", digits, value.number());
  double rounded = std::strtod(text, nullptr);
  if (precision < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    rounded = std::nearbyint(value.number() / scale) * scale;
  }
  if (value.is_integral()) return static_cast<std::int64_t>(rounded);
  return rounded;
}

Value tojson(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p(
      "tojson", "ensure_ascii indent separators sort_keys", arguments
  );
  JsonStyle style;
  style.ensure_ascii = truthy(p.get(0, false));
  style.sort_keys = truthy(p.get(3, false));
  const Value indent = p.get(1, Value());
  if (!indent.is_none()) {
    style.multiline = true;
    style.item_separator = ",";
    style.indent =
        indent.is_string()
            ? indent.text()
            : arithmetic("*", Value(" "), Value(p.integer(1, 0))).text();
  }
  const Value separators = p.get(2, Value());
  if (!separators.is_none()) {
    const std::vector<Value> parts = items_of(separators);
    if (parts.size() != 2 || !parts[0].is_string() || !parts[1].is_string()) {
      fail_value("separators must be two strings");
    }
    style.item_separator = parts[0].text();
    style.key_separator = parts[1].text();
  }
  return to_json(value, style);
}

struct Entry {
  std::string_view name;
  FilterFunction call;
};

constexpr Entry kFilters[] = {
    {"trim", trim},
    {"tojson", tojson},
    {"string", string},
    {"upper", transformed<to_upper>},
    {"lower", transformed<to_lower>},
    {"capitalize", transformed<capitalize>},
    {"title", title},
    {"replace", replace},
    {"indent", indent},
    {"int", integer},
    {"float", real},
    {"abs", absolute},
    {"round", round_filter},
    {"format", format},
    {"truncate", truncate},
    {"wordcount", wordcount},
    {"center", center},
    {"escape", escape},
    {"e", escape},
    {"forceescape", escape},
    {"safe", string},
};

}  // namespace

FilterFunction find_text_filter(std::string_view name) {
  const auto found = std::ranges::find(kFilters, name, &Entry::name);
  return found == std::end(kFilters) ? nullptr : found->call;
}

}  // namespace hearth::text::jinja
