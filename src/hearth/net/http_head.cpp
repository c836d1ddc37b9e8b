#include "hearth/net/http_head.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "hearth/base/ascii.h"
#include "hearth/base/error.h"
#include "hearth/base/quoted.h"

namespace hearth::net {
namespace {

constexpr std::size_t kMostHeaders = 256;
// Far beyond any file, and far from overflow when added to.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;

// The next line, without its end.
std::string_view take_line_of(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_name(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || kMarks.find(c) != kMarks.npos;
  });
}

bool is_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return static_cast<unsigned char>(c) >= ' ' ? c != 0x7f : c == '\t';
  });
}

int parse_status(std::string_view line) {
  const bool form =
      (line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ")) &&
      line.size() >= 12 && (line.size() == 12 || line[12] == ' ');
  const auto number =
      form ? parse_decimal(line.substr(9, 3)) : std::optional<std::uint64_t>();
  if (!number || *number < 100) {
    throw FormatError(
        fmt::format("the answer is not HTTP: it begins {}", in_quotes(line, 40))
    );
  }
  return static_cast<int>(*number);
}

}  // namespace

std::optional<std::string_view> HttpHead::find(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

bool HttpHead::is_redirect() const {
  return status == 301 || status == 302 || status == 303 || status == 307 ||
         status == 308;
}

HttpHead parse_http_head(std::string_view text) {
  if (text.size() > kMostHeadBytes) {
    throw FormatError("the answer's headers are too large");
  }
  HttpHead out;
  out.status = parse_status(take_line_of(text));
  while (!text.empty()) {
    const std::string_view line = take_line_of(text);
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    const std::string_view value =
        colon == line.npos ? "" : trimmed(line.substr(colon + 1));
    if (colon == line.npos || !is_name(name) || !is_value(value)) {
      throw FormatError(
          fmt::format("the answer has a broken header {}", in_quotes(name, 40))
      );
    }
    if (out.headers.size() == kMostHeaders) {
      throw FormatError("the answer has too many headers");
    }
    out.headers.emplace_back(ascii_lower(name), value);
  }
  return out;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || next != end ||
      value > kMostBytes) {
    return std::nullopt;
  }
  return value;
}

void check_body_headers(const HttpHead& head, bool head_request) {
  std::optional<std::uint64_t> length;
  bool chunked = false;
  for (const auto& [name, value] : head.headers) {
    if (name == "content-length") {
      const auto one = parse_decimal(value);
      if (!one || (length && *length != *one)) {
        throw FormatError(
            fmt::format(
                "the answer has a broken Content-Length {}",
                in_quotes(value, 40)
            )
        );
      }
      length = one;
    } else if (name == "transfer-encoding") {
      if (ascii_lower(value) != "chunked" || chunked) {
        throw FormatError(
            fmt::format(
                "the answer comes as {}, which is not read",
                in_quotes(value, 40)
            )
        );
      }
      chunked = true;
    } else if (name == "content-encoding" && ascii_lower(value) != "identity") {
      // The header says nothing about an answer that has no body.
      if (!head_request) {
        throw FormatError(
            fmt::format(
                "the answer is compressed ({}), which was not asked for",
                in_quotes(value, 40)
            )
        );
      }
    }
  }
  if (chunked && length) {
    throw FormatError("the answer gives its length in two ways");
  }
}

}  // namespace hearth::net
