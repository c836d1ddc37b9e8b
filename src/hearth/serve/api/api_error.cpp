#include "hearth/serve/api/api_error.h"

#include "hearth/base/json.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::serve {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

// Names and values of the request stand in it, which may have any length.
std::string shortened(std::string_view text) {
  constexpr std::size_t kMostBytes = 1000;
  if (text.size() <= kMostBytes) return std::string(text);
  std::string_view shown = text.substr(0, kMostBytes);
  shown = shown.substr(0, text::valid_utf8_prefix(shown));
  return std::string(shown) + "...";
}

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(shortened(text));
}

}  // namespace

std::string error_body(const ApiError& error) {
  Json body;
  body["error"] = {
      {"message", shortened(error.what())},
      {"type", type_of(error.status())},
      {"param", or_null(error.param())},
      {"code", or_null(error.code())}
  };
  return to_json_line(body);
}

HttpAnswer error_answer(const ApiError& error, int retry_after) {
  HttpAnswer answer{
      error.status(), {{"Content-Type", "application/json"}}, error_body(error)
  };
  if (error.status() == 401) {
    answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  if (error.status() == 429 || error.status() == 503) {
    answer.headers.emplace_back("Retry-After", std::to_string(retry_after));
  }
  return answer;
}

}  // namespace hearth::serve
