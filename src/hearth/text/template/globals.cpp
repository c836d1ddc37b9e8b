// Functions every template can call.
#include <algorithm>
#include <array>
#include <cstdio>

#include "hearth/text/template/attributes.h"
#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"
#include "hearth/text/template/runtime_impl.h"

namespace hearth::text::jinja {
namespace {

class Function : public Object {
 public:
  using Body = Value (*)(Runtime&, Arguments&);
  Function(std::string_view name, Body body) : name_(name), body_(body) {}
  std::string_view type_name() const override { return "function"; }
  std::string repr() const override {
    return "<function " + std::string(name_) + ">";
  }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override {
    return body_(runtime, arguments);
  }
  std::string_view name() const { return name_; }

 private:
  std::string_view name_;
  Body body_;
};

Value range(Runtime&, Arguments& arguments) {
  const Parameters p("range", "start stop step", arguments);
  p.at(0);
  const bool one = !p.has(1);
  const std::int64_t start = one ? 0 : p.integer(0, 0);
  const std::int64_t stop = one ? p.integer(0, 0) : p.integer(1, 0);
  const std::int64_t step = p.integer(2, 1);
  if (step == 0) fail_value("range() arg 3 must not be zero");
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  if (std::max({std::abs(start / 2), std::abs(stop / 2)}) > kFar ||
      step > kFar || step < -kFar) {
    throw Failure{TemplateFault::kLimit, "range() bounds must be below 2^61"};
  }
  const std::int64_t span = step > 0 ? stop - start : start - stop;
  const std::int64_t size = std::abs(step);
  const std::int64_t count = span <= 0 ? 0 : (span - 1) / size + 1;
  if (count > 100000) {
    fail_value(
        "Range too big. The sandbox blocks ranges larger than MAX_RANGE "
        "(100000)."
    );
  }
  Meter::work(static_cast<std::size_t>(count));
  Meter::allocate(static_cast<std::size_t>(count) * sizeof(Value));
  std::vector<Value> items;
  items.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) items.emplace_back(start + i * step);
  return Value::sequence(SequenceKind::kRange, std::move(items));
}

// dict(mapping or pairs, name=value ...)
Dict read_dict(Arguments& arguments) {
  Dict made;
  if (arguments.positional.size() > 1) {
    fail_type(
        "dict expected at most 1 argument, got " +
        std::to_string(arguments.positional.size())
    );
  }
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional.front();
    if (source.is_dict()) {
      made = source.dict();
      Meter::allocate(made.entries.size() * 2 * sizeof(Value));
    } else {
      for (const Value& item : items_of(source)) {
        std::vector<Value> pair = items_of(item);
        if (pair.size() != 2) {
          fail_value("dictionary update sequence elements must be pairs");
        }
        check_hashable(pair[0]);
        Meter::work(made.entries.size() / 8);
        made.set(pair[0], pair[1]);
      }
    }
  }
  for (auto& [name, value] : arguments.named) {
    Meter::work(made.entries.size() / 8);
    made.set(name, value);
  }
  return made;
}

Value dict(Runtime&, Arguments& arguments) {
  return Value::dict(read_dict(arguments));
}

Value new_namespace(Runtime& runtime, Arguments& arguments) {
  const auto made = runtime.make_namespace();
  for (const auto& [name, value] : read_dict(arguments).entries) {
    made->set(str(name), value);
  }
  return Value(std::shared_ptr<Object>(made));
}

Value raise_exception(Runtime&, Arguments& arguments) {
  const Parameters p("raise_exception", "message", arguments);
  throw Failure{TemplateFault::kRaised, str(p.at(0))};
}

Value strftime_now(Runtime& runtime, Arguments& arguments) {
  const Parameters p("strftime_now", "format", arguments);
  return format_time(runtime.now(), p.text(0));
}

// Empty the first time it is called, the separator ever after.
class Joiner : public Object {
 public:
  explicit Joiner(std::string separator) : separator_(std::move(separator)) {}
  std::string_view type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value call(Runtime&, Arguments& arguments) override {
    const Parameters none("joiner", "", arguments);
    return std::exchange(used_, true) ? separator_ : std::string();
  }

 private:
  std::string separator_;
  bool used_ = false;
};

Value joiner(Runtime&, Arguments& arguments) {
  const Parameters p("joiner", "sep", arguments);
  return Value(
      std::shared_ptr<Object>(std::make_shared<Joiner>(str(p.get(0, ", "))))
  );
}

struct Global {
  std::string_view name;
  Value value;
};

Value function(std::string_view name, Function::Body body) {
  return Value(std::shared_ptr<Object>(std::make_shared<Function>(name, body)));
}

constexpr std::array<const char*, 7> kDays = {"Sunday",   "Monday",
                                              "Tuesday",  "Wednesday",
                                              "Thursday", "Friday",
                                              "Saturday"};
constexpr std::array<const char*, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"
};

std::string number(int value, int width, bool padded) {
  std::string text = std::to_string(value);
  while (padded && static_cast<int>(text.size()) < width) text.insert(0, "0");
  return text;
}

std::string time_field(const std::tm& t, char code, bool padded) {
  const int hour12 = t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
  const auto day = static_cast<std::size_t>(std::clamp(t.tm_wday, 0, 6));
  const auto month = static_cast<std::size_t>(std::clamp(t.tm_mon, 0, 11));
  switch (code) {
    case 'Y':
      return std::to_string(t.tm_year + 1900);
    case 'y':
      return number((t.tm_year + 1900) % 100, 2, padded);
    case 'm':
      return number(t.tm_mon + 1, 2, padded);
    case 'd':
      return number(t.tm_mday, 2, padded);
    case 'e': {
      const std::string text = std::to_string(t.tm_mday);
      return text.size() < 2 && padded ? " " + text : text;
    }
    case 'H':
      return number(t.tm_hour, 2, padded);
    case 'I':
      return number(hour12, 2, padded);
    case 'M':
      return number(t.tm_min, 2, padded);
    case 'S':
      return number(t.tm_sec, 2, padded);
    case 'j':
      return number(t.tm_yday + 1, 3, padded);
    case 'p':
      return t.tm_hour < 12 ? "AM" : "PM";
    case 'A':
      return kDays[day];
    case 'a':
      return std::string(kDays[day]).substr(0, 3);
    case 'B':
      return kMonths[month];
    case 'b':
    case 'h':
      return std::string(kMonths[month]).substr(0, 3);
    case 'F':
      return format_time(t, "%Y-%m-%d");
    case 'D':
    case 'x':
      return format_time(t, "%m/%d/%y");
    case 'T':
    case 'X':
      return format_time(t, "%H:%M:%S");
    case 'R':
      return format_time(t, "%H:%M");
    case 'c':
      return format_time(t, "%a %b %e %H:%M:%S %Y");
    case 'u':
      return std::to_string(t.tm_wday == 0 ? 7 : t.tm_wday);
    case 'w':
      return std::to_string(t.tm_wday);
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case 'f':
      return "000000";
    case 'z':
    case 'Z':
      return "";  // a naive time, as datetime.now() is
    case '%':
      return "%";
    default:
      return std::string("%") + code;
  }
}

}  // namespace

std::string format_time(const std::tm& time, std::string_view format) {
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const bool bare = format[i + 1] == '-' && i + 2 < format.size();
    i += bare ? 2 : 1;
    out += time_field(time, format[i], !bare);
  }
  Meter::allocate(out.size());
  return out;
}

const Value* find_global(std::string_view name) {
  static const Global kGlobals[] = {
      {"range", function("range", range)},
      {"dict", function("dict", dict)},
      {"namespace", function("namespace", new_namespace)},
      {"raise_exception", function("raise_exception", raise_exception)},
      {"strftime_now", function("strftime_now", strftime_now)},
      {"joiner", function("joiner", joiner)},
  };
  const auto found = std::ranges::find(kGlobals, name, &Global::name);
  return found == std::end(kGlobals) ? nullptr : &found->value;
}

}  // namespace hearth::text::jinja
