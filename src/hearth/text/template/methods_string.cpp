// Methods of str.
#include <algorithm>
#include <span>

#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/methods_impl.h"
#include "hearth/text/template/python.h"
#include "hearth/text/template/text.h"

namespace hearth::text::jinja {
namespace {

// Charged for a scan and a copy of the text.
const std::string& scanned(const Value& self) {
  Meter::work(self.text().size() / 64 + 1);
  Meter::allocate(self.text().size());
  return self.text();
}

template <Side side>
Value strip_method(const Value& self, Arguments& arguments) {
  const Parameters p("strip", "chars", arguments);
  const std::string& text = scanned(self);
  const Value chars = p.get(0, Value());
  if (chars.is_none()) return strip(text, side);
  if (!chars.is_string()) fail_type("strip arg must be None or str");
  Meter::work(chars.text().size() / 2);
  return strip(text, side, chars.text());
}

Value list_of(const std::vector<std::string_view>& parts) {
  Meter::work(parts.size());
  Meter::allocate(parts.size() * 64);
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.emplace_back(part);
  return Value::list(std::move(items));
}

template <bool from_right>
Value split_method(const Value& self, Arguments& arguments) {
  const Parameters p(
      from_right ? "rsplit" : "split", "sep maxsplit", arguments
  );
  const std::int64_t limit = p.integer(1, -1);
  const Value separator = p.get(0, Value());
  const std::string& text = scanned(self);
  if (separator.is_none()) {
    return list_of(split_spaces(text, limit, from_right));
  }
  if (!separator.is_string()) {
    fail_type("must be str or None, not " + std::string(type_name(separator)));
  }
  if (separator.text().empty()) fail_value("empty separator");
  Meter::search(text.size(), separator.text().size());
  return list_of(split_at(text, separator.text(), limit, from_right));
}

Value splitlines(const Value& self, Arguments& arguments) {
  const Parameters p("splitlines", "keepends", arguments);
  return list_of(split_lines(scanned(self), truthy(p.get(0, false))));
}

Value replace(const Value& self, Arguments& arguments) {
  const Parameters p("replace", "old new count", arguments);
  const std::string &text = self.text(), &old = p.text(0), &with = p.text(1);
  Meter::search(text.size(), old.size());
  const std::size_t hits = count_of(text, old);
  Meter::work(text.size() / 64 + hits + 1);
  if (hits > (std::size_t{1} << 32)) fail_value("replacement too large");
  Meter::allocate(text.size() + hits * with.size());
  return replace_all(text, old, with, p.integer(2, -1));
}

template <bool at_start>
Value affix(const Value& self, Arguments& arguments) {
  const char* name = at_start ? "startswith" : "endswith";
  const Parameters p(name, "affix start end", arguments);
  std::string text = scanned(self);
  if (p.has(1) || p.has(2)) {
    text =
        get_slice(self, p.get(1, Value()), p.get(2, Value()), Value()).text();
  }
  const auto matches = [&](const Value& part) {
    if (!part.is_string()) {
      fail_type(
          std::string(name) + " first arg must be str or a tuple of str, not " +
          std::string(type_name(part))
      );
    }
    return at_start ? text.starts_with(part.text())
                    : text.ends_with(part.text());
  };
  if (!p.at(0).is_kind(SequenceKind::kTuple)) return matches(p.at(0));
  const auto& parts = p.at(0).sequence().items;
  return std::any_of(parts.begin(), parts.end(), matches);
}

template <std::string (*transform)(std::string_view)>
Value transformed(const Value& self, Arguments& arguments) {
  const Parameters none("method", "", arguments);
  Meter::allocate(self.text().size() * 6);
  return transform(scanned(self));
}

template <bool from_right, bool required>
Value find_method(const Value& self, Arguments& arguments) {
  const Parameters p("find", "sub start end", arguments);
  const std::string& text = scanned(self);
  std::size_t base = 0;
  bool inside = true;
  std::string_view part = text;
  const std::int64_t count = length(self);
  if (p.has(1) || p.has(2)) {
    const auto bound = [&](std::size_t index, std::int64_t otherwise) {
      std::int64_t at = p.get(index, Value()).is_none()
                            ? otherwise
                            : p.integer(index, otherwise);
      if (at < 0) at = std::max<std::int64_t>(0, at + count);
      return static_cast<std::size_t>(std::min(at, count + 1));
    };
    const std::size_t from = bound(1, 0), to = bound(2, count);
    base = byte_offset(text, from);
    part = part.substr(base, byte_offset(text, std::max(from, to)) - base);
    inside = from <= to;
  }
  const std::string& wanted = p.text(0);
  Meter::search(text.size(), wanted.size());
  const std::size_t at = !inside      ? std::string_view::npos
                         : from_right ? part.rfind(wanted)
                                      : part.find(wanted);
  if (at != std::string_view::npos) {
    return static_cast<std::int64_t>(
        code_point_count(std::string_view(text).substr(0, base + at))
    );
  }
  if (required) fail_value("substring not found");
  return -1;
}

Value count(const Value& self, Arguments& arguments) {
  const Parameters p("count", "sub", arguments);
  Meter::search(self.text().size(), p.text(0).size());
  return static_cast<std::int64_t>(count_of(scanned(self), p.text(0)));
}

Value join(const Value& self, Arguments& arguments) {
  const Parameters p("join", "iterable", arguments);
  if (!is_iterable(p.at(0))) fail_type("can only join an iterable");
  const std::vector<Value> items = items_of(p.at(0));
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) {
      fail_type(
          "sequence item " + std::to_string(i) + ": expected str instance, " +
          std::string(type_name(items[i])) + " found"
      );
    }
    Meter::allocate(items[i].text().size() + self.text().size());
    if (i > 0) out += self.text();
    out += items[i].text();
  }
  return out;
}

Value format(const Value& self, Arguments& arguments) {
  return brace_format(self.text(), arguments);
}

template <bool before>
Value partition(const Value& self, Arguments& arguments) {
  const Parameters p("partition", "sep", arguments);
  const std::string &text = scanned(self), &separator = p.text(0);
  if (separator.empty()) fail_value("empty separator");
  Meter::search(text.size(), separator.size());
  const std::size_t at = before ? text.find(separator) : text.rfind(separator);
  if (at == std::string::npos) {
    return before ? Value::tuple({self, "", ""}) : Value::tuple({"", "", self});
  }
  return Value::tuple(
      {text.substr(0, at), separator, text.substr(at + separator.size())}
  );
}

template <bool prefix>
Value remove_affix(const Value& self, Arguments& arguments) {
  const Parameters p("removeprefix", "affix", arguments);
  const std::string &text = scanned(self), &part = p.text(0);
  if (prefix) return text.starts_with(part) ? text.substr(part.size()) : text;
  const bool ends = text.ends_with(part);
  return ends ? text.substr(0, text.size() - part.size()) : text;
}

// Spaces to add on the left and right of a text `missing` too short.
template <Side side>
Value justify(const Value& self, Arguments& arguments) {
  const Parameters p("justify", "width fillchar", arguments);
  const std::string fill = p.has(1) ? p.text(1) : " ";
  if (code_point_count(fill) != 1) {
    fail_type("The fill character must be exactly one character long");
  }
  const std::int64_t width = p.integer(0, 0);
  const std::int64_t short_of = width - length(self);
  if (short_of <= 0) return self;
  Meter::allocate(static_cast<std::size_t>(short_of) * fill.size());
  // Python puts the odd space of a centred text on the left of an even width.
  std::int64_t left = short_of;
  if (side == Side::kLeft) left = 0;
  if (side == Side::kBoth) left = short_of / 2 + (short_of & width & 1);
  std::string out;
  for (std::int64_t i = 0; i < left; ++i) out += fill;
  out += scanned(self);
  for (std::int64_t i = left; i < short_of; ++i) out += fill;
  return out;
}

Value zfill(const Value& self, Arguments& arguments) {
  const Parameters p("zfill", "width", arguments);
  p.at(0);
  const std::string& text = scanned(self);
  const std::int64_t short_of = p.integer(0, 0) - length(self);
  if (short_of <= 0) return self;
  Meter::allocate(static_cast<std::size_t>(short_of));
  const std::size_t sign = text.starts_with('+') || text.starts_with('-');
  return text.substr(0, sign) +
         std::string(static_cast<std::size_t>(short_of), '0') +
         text.substr(sign);
}

// True when the text is not empty and every character is of the class.
template <bool (*member)(char32_t)>
Value all_are(const Value& self, Arguments& arguments) {
  const Parameters none("method", "", arguments);
  const std::string& text = scanned(self);
  for (std::size_t at = 0; at < text.size();) {
    if (!member(next_code_point(text, at))) return false;
  }
  return !text.empty();
}

bool is_alnum(char32_t c) {
  return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c);
}

// At least one cased character, all of them of the wanted case.
template <bool upper>
Value case_is(const Value& self, Arguments& arguments) {
  const Parameters none("method", "", arguments);
  const std::string& text = scanned(self);
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (is_title(c) || (upper ? is_lower(c) : is_upper(c))) return false;
    any |= upper ? is_upper(c) : is_lower(c);
  }
  return any;
}

Value istitle(const Value& self, Arguments& arguments) {
  const Parameters none("istitle", "", arguments);
  const std::string& text = scanned(self);
  bool any = false, inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool big = is_upper(c) || is_title(c), small = is_lower(c);
    if ((big && inside) || (small && !inside)) return false;
    any |= big || small;
    inside = big || small;
  }
  return any;
}

Value isascii(const Value& self, Arguments& arguments) {
  const Parameters none("isascii", "", arguments);
  return std::ranges::all_of(scanned(self), [](unsigned char c) {
    return c < 0x80;
  });
}

Value isprintable(const Value& self, Arguments& arguments) {
  return self.text().empty() ||
         all_are<is_printable>(self, arguments).boolean();
}

constexpr Method kStringMethods[] = {
    {"strip", strip_method<Side::kBoth>},
    {"lstrip", strip_method<Side::kLeft>},
    {"rstrip", strip_method<Side::kRight>},
    {"split", split_method<false>},
    {"rsplit", split_method<true>},
    {"startswith", affix<true>},
    {"endswith", affix<false>},
    {"replace", replace},
    {"upper", transformed<to_upper>},
    {"lower", transformed<to_lower>},
    {"title", transformed<to_title>},
    {"capitalize", transformed<capitalize>},
    {"casefold", transformed<case_fold>},
    {"swapcase", transformed<swap_case>},
    {"splitlines", splitlines},
    {"join", join},
    {"format", format},
    {"find", find_method<false, false>},
    {"rfind", find_method<true, false>},
    {"index", find_method<false, true>},
    {"rindex", find_method<true, true>},
    {"count", count},
    {"partition", partition<true>},
    {"rpartition", partition<false>},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"ljust", justify<Side::kLeft>},
    {"rjust", justify<Side::kRight>},
    {"center", justify<Side::kBoth>},
    {"zfill", zfill},
    {"isalpha", all_are<is_alpha>},
    {"isalnum", all_are<is_alnum>},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_digit>},
    {"isnumeric", all_are<is_numeric>},
    {"isspace", all_are<is_space>},
    {"isprintable", isprintable},
    {"isascii", isascii},
    {"isupper", case_is<true>},
    {"islower", case_is<false>},
    {"istitle", istitle},
};

}  // namespace

const Method* find_string_method(std::string_view name) {
  const auto found = std::ranges::find(kStringMethods, name, &Method::name);
  return found == std::end(kStringMethods) ? nullptr : found;
}

}  // namespace hearth::text::jinja
