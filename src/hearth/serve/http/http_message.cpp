#include "hearth/serve/http/http_message.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/ascii.h"
#include "hearth/base/error.h"

namespace hearth::serve {
namespace {

// Whether a comma-separated list holds the word.
bool lists(std::string_view value, std::string_view word) {
  while (!value.empty()) {
    const auto comma = std::min(value.find(','), value.size());
    if (same_name(trimmed(value.substr(0, comma), " "), word)) return true;
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return false;
}

void check_line(std::string_view text) {
  const bool ends = std::ranges::any_of(text, [](char c) {
    return c == '\r' || c == '\n' || c == '\0';
  });
  if (ends) throw UsageError("[serve.answer_head] a header must be one line");
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return ascii_lower(c); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

const std::string* HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (same_name(key, name)) return &value;
  }
  return nullptr;
}

bool HttpRequest::keeps_alive() const {
  const std::string* connection = header("Connection");
  if (connection != nullptr && lists(*connection, "close")) return false;
  return minor >= 1 ||
         (connection != nullptr && lists(*connection, "keep-alive"));
}

std::string_view reason_of(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string answer_head(
    const HttpAnswer& answer,
    HttpFraming framing,
    bool keep_alive
) {
  std::string out = fmt::format(
      "HTTP/1.1 {} {}\r\n", answer.status, reason_of(answer.status)
  );
  for (const auto& [name, value] : answer.headers) {
    check_line(name);
    check_line(value);
    out += name + ": " + value + "\r\n";
  }
  if (framing == HttpFraming::chunked) out += "Transfer-Encoding: chunked\r\n";
  if (framing == HttpFraming::length && answer.status != 204) {
    out += fmt::format("Content-Length: {}\r\n", answer.body.size());
  }
  const bool keep = keep_alive && framing != HttpFraming::closing;
  return out + (keep ? "Connection: keep-alive\r\n\r\n"
                     : "Connection: close\r\n\r\n");
}

std::string http_chunk(std::string_view text) {
  std::string out = fmt::format("{:x}\r\n", text.size());
  out += text;
  return out + "\r\n";
}

}  // namespace hearth::serve
