#include "hearth/base/json.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/json_reader_impl.h"
#include "hearth/base/units.h"

namespace hearth {
namespace {

struct Position {
  long line = 1, column = 1;
};

Position position_of(
    std::string_view text,
    std::size_t offset,
    long first_line
) {
  Position p;
  p.line = first_line;
  for (const char c : text.substr(0, std::min(offset, text.size()))) {
    if (c == '\n') {
      ++p.line;
      p.column = 1;
    } else {
      ++p.column;
    }
  }
  return p;
}

// nlohmann's parser recurses nowhere but its values do when they are freed or
// walked, so nesting is counted before anything is built.
void check_depth(
    std::string_view text,
    std::string_view name,
    int max_depth,
    long first_line
) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_depth) {
        throw FormatError::at(
            name, position_of(text, i, first_line).line,
            fmt::format("JSON must nest at most {} deep", max_depth)
        );
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax
// error while parsing ..." without what we say ourselves.
std::string plain_reason(std::string_view what) {
  const auto at = what.find("syntax error");
  if (at == std::string_view::npos) {
    const auto colon = what.find(": ");
    return std::string(colon == what.npos ? what : what.substr(colon + 2));
  }
  std::string reason(what.substr(at));
  const auto last_read = reason.find("; last read");
  if (last_read != std::string::npos) reason.resize(last_read);
  return reason;
}

}  // namespace

Json parse_json(
    std::string_view text,
    std::string_view name,
    const JsonLimits& limits,
    long first_line
) {
  if (text.size() > limits.max_bytes) {
    throw FormatError(
        fmt::format(
            "{}: JSON must be at most {}, got {}", name,
            format_bytes(limits.max_bytes), format_bytes(text.size())
        )
    );
  }
  check_depth(text, name, limits.max_depth, first_line);
  JsonReader reader;
  if (Json::sax_parse(text, &reader)) return reader.take();
  const Position p = position_of(
      text, reader.error_at > 0 ? reader.error_at - 1 : 0, first_line
  );
  throw FormatError(
      fmt::format(
          "{}:{}:{}: not JSON: {}", name, p.line, p.column,
          plain_reason(reader.error)
      )
  );
}

Json read_json_file(const std::string& path, const JsonLimits& limits) {
  return parse_json(read_text_file(path, limits.max_bytes), path, limits);
}

std::string to_json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json_text(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hearth
