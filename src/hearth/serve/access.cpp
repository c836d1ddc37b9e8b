#include "hearth/serve/access.h"

#include <algorithm>

#include "hearth/serve/api_error.h"

namespace hearth::serve {
namespace {

// "localhost:8080" and "[::1]:8080" without the port.
std::string_view name_of_host(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// 127.0.0.1 and its neighbours.
bool is_loopback_v4(std::string_view name) {
  if (!name.starts_with("127.")) return false;
  int parts = 0;
  for (; parts < 5; ++parts) {
    const auto dot = std::min(name.find('.'), name.size());
    const auto part = name.substr(0, dot);
    if (part.empty() || part.size() > 3 || !is_digits(part)) return false;
    name.remove_prefix(std::min(dot + 1, name.size()));
    if (name.empty()) break;
  }
  return parts == 3;
}

bool is_own_name(std::string_view host) {
  const auto name = name_of_host(host);
  return same_name(name, "localhost") || name == "[::1]" ||
         is_loopback_v4(name);
}

bool listed(const AccessRules& rules, const std::string& origin) {
  return std::ranges::find(rules.cors_origins, origin) !=
         rules.cors_origins.end();
}

}  // namespace

void check_host(const AccessRules& rules, const HttpRequest& request) {
  const std::string* host = request.header("Host");
  if (!rules.loopback_names_only || host == nullptr || is_own_name(*host)) {
    return;
  }
  throw ApiError(
      403, "the Host header must name this machine: localhost or 127.0.0.1"
  );
}

void check_origin(const AccessRules& rules, const HttpRequest& request) {
  const std::string* origin = request.header("Origin");
  if (origin == nullptr || listed(rules, *origin)) return;
  const std::string* host = request.header("Host");
  if (host != nullptr &&
      (*origin == "http://" + *host || *origin == "https://" + *host)) {
    return;
  }
  throw ApiError(
      403,
      "pages of other origins may not ask here (--cors names those that "
      "may)"
  );
}

void check_key(const AccessRules& rules, const HttpRequest& request) {
  if (rules.keys.empty()) return;
  const std::string* given = request.header("Authorization");
  if (given != nullptr && rules.keys.accepts_header(*given)) return;
  throw ApiError(
      401,
      given == nullptr ? "an API key is needed: Authorization: Bearer KEY"
                       : "the API key is not known here",
      {}, "invalid_api_key"
  );
}

void check_json_type(const HttpRequest& request) {
  const std::string* type = request.header("Content-Type");
  if (type != nullptr) {
    std::string_view name = *type;
    name = name.substr(0, name.find(';'));
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (same_name(name, "application/json")) return;
  }
  throw ApiError(415, "the Content-Type must be application/json");
}

HttpHeaders cors_headers(const AccessRules& rules, const HttpRequest& request) {
  const std::string* origin = request.header("Origin");
  if (origin == nullptr || !listed(rules, *origin)) return {};
  return {{"Access-Control-Allow-Origin", *origin}, {"Vary", "Origin"}};
}

}  // namespace hearth::serve
