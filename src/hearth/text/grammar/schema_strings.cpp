// Texts: their lengths, patterns and formats.
#include <map>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/regex.h"
#include "hearth/text/grammar/schema_impl.h"

namespace hearth::text::grammar {
namespace {

std::string date() {
  return "[1-9][0-9]{3}-"
         "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
         "|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
         "|02-(0[1-9]|1[0-9]|2[0-8]))";
}

std::string time_of_day() {
  return "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"
         "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
}

std::string duration() {
  const std::string n = "[0-9]{1,9}";
  const std::string second = n + "S", minute = n + "M(" + second + ")?",
                    hour = n + "H(" + minute + ")?";
  const std::string time = "T(" + hour + "|" + minute + "|" + second + ")";
  const std::string day = n + "D", month = n + "M(" + day + ")?",
                    year = n + "Y(" + month + ")?";
  return "P((" + year + "|" + month + "|" + day + ")(" + time + ")?|" + time +
         "|" + n + "W)";
}

// The last label begins with a letter, so that it is no number; two hyphens
// side by side belong to encoded names, which have rules of their own.
std::string hostname() {
  const std::string more = "(-[A-Za-z0-9]{1,15}){0,2}";
  return "([A-Za-z0-9]{1,15}" + more + "\\.){0,3}[A-Za-z][A-Za-z0-9]{0,14}" +
         more;
}

std::string ipv4() {
  const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return byte + "(\\." + byte + "){3}";
}

// Eight groups, or fewer with "::" for the zeros that are left out.
std::string ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  std::string all = "(" + group + ":){7}" + group + "|(" + group +
                    ":){1,7}:|:((:" + group + "){1,7}|:)";
  for (int before = 1; before <= 6; ++before) {
    all += fmt::format(
        "|({}:){{1,{}}}(:{}){{1,{}}}", group, before, group, 7 - before
    );
  }
  return "(" + all + ")";
}

std::string uri() {
  const std::string one = "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
  const std::string user = "([A-Za-z0-9._~!$&'()*+,;=:-]{1,24}@)?";
  const std::string host =
      "(" + hostname() + "|" + ipv4() + "|\\[" + ipv6() + "\\])";
  const std::string authority = "//" + user + host + "(:[0-9]{1,5})?";
  return "[A-Za-z][A-Za-z0-9+.-]{0,15}:(" + authority + "(/" + one +
         "*)*|//(/" + one + "*)+|" + one + "+(/" + one + "*)*)(\\?(" + one +
         "|[/?])*)?(#(" + one + "|[/?])*)?";
}

// What each format is generated as: a part of what it allows, all of it valid.
// February has 28 days, and hosts are short.
const std::map<std::string, std::string>& formats() {
  static const std::string kLabel =
      "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?";
  static const std::map<std::string, std::string> kFormats{
      {"date", date()},
      {"time", time_of_day()},
      {"date-time", date() + "T" + time_of_day()},
      {"duration", duration()},
      {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
      {"email", "[A-Za-z0-9_+-]{1,24}(\\.[A-Za-z0-9_+-]{1,24}){0,2}@" + kLabel +
                    "(\\." + kLabel + "){1,3}"},
      {"hostname", hostname()},
      {"ipv4", ipv4()},
      {"ipv6", ipv6()},
      {"uri", uri()}
  };
  return kFormats;
}

ExprPtr quoted(ExprPtr inner) {
  return sequence({text("\""), std::move(inner), text("\"")});
}

}  // namespace

ExprPtr SchemaReader::patterned(
    const std::string& pattern,
    const std::string& path
) {
  RegexOptions options;
  options.who = fmt::format("{} 'pattern' at {}:", kSchemaWho, path);
  options.chars = json_chars;
  options.search = true;
  options.wide = !strict_;
  options.effort = &effort_;
  try {
    return quoted(regex_expr(pattern, options));
  } catch (const EffortError&) {
    throw;
  } catch (const UsageError&) {
    if (strict_) throw;
    return nullptr;
  }
}

ExprPtr SchemaReader::string(const Json& schema, const std::string& path) {
  const bool sized =
      schema.contains("minLength") || schema.contains("maxLength");
  const auto pattern = schema.find("pattern");
  const auto format = schema.find("format");
  const int said = (sized ? 1 : 0) + (pattern != schema.end() ? 1 : 0) +
                   (format != schema.end() ? 1 : 0);
  if (said > 1) {
    unheld("lengths, 'pattern' and 'format' are supported one at a time", path);
  }
  if (pattern != schema.end()) {
    if (!pattern->is_string()) fail_schema("'pattern' must be a text", path);
    ExprPtr made = patterned(pattern->get<std::string>(), path);
    if (made) return made;
  }
  if (format != schema.end()) {
    const auto found = format->is_string()
                           ? formats().find(format->get<std::string>())
                           : formats().end();
    if (found != formats().end()) {
      RegexOptions options;
      options.chars = json_chars;
      options.effort = &effort_;
      return quoted(regex_expr(found->second, options));
    }
    unheld(
        fmt::format("the 'format' {} is not supported", to_json_line(*format)),
        path
    );
  }
  const int min = count_of(schema, "minLength", 0, path);
  const int max = count_of(schema, "maxLength", kNoLimit, path);
  if (max != kNoLimit && max < min) {
    fail_schema("'maxLength' must not be below 'minLength'", path);
  }
  return json_string(min, max);
}

}  // namespace hearth::text::grammar
