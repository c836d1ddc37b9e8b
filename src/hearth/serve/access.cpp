#include "hearth/serve/access.h"

#include <algorithm>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/http/listen_socket.h"

namespace hearth::serve {
namespace {

bool is_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "localhost:8080" and "[::1]:8080" without the port; empty where it is neither
// a name nor a name and a port.
std::string_view name_of_host(std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const auto close = host.find(']');
  if (bracketed && close == host.npos) return {};
  const auto end =
      bracketed ? close + 1 : std::min(host.find(':'), host.size());
  const auto port = host.substr(end);
  const bool plain =
      port.empty() ||
      (port.starts_with(':') && port.size() <= 6 && is_digits(port.substr(1)));
  return plain ? host.substr(0, end) : std::string_view();
}

bool is_own_name(const AccessRules& rules, std::string_view host) {
  std::string name(name_of_host(host));
  if (same_name(name, "localhost")) return true;
  for (const auto& known : rules.host_names) {
    if (same_name(name, known)) return true;
  }
  if (name.starts_with('[')) name = name.substr(1, name.size() - 2);
  return rules.hosts == HostRule::addresses ? is_address(name)
                                            : is_loopback(name);
}

bool listed(const AccessRules& rules, const std::string& origin) {
  return std::ranges::find(rules.cors_origins, origin) !=
         rules.cors_origins.end();
}

}  // namespace

void check_host(const AccessRules& rules, const HttpRequest& request) {
  const std::string* host = request.header("Host");
  if (rules.hosts == HostRule::any || host == nullptr ||
      is_own_name(rules, *host)) {
    return;
  }
  throw ApiError(
      403,
      "the Host header must name this machine: localhost, its address, or a "
      "name that --allow-host gives"
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

void check_encoding(const HttpRequest& request) {
  const std::string* encoding = request.header("Content-Encoding");
  if (encoding == nullptr || same_name(*encoding, "identity")) return;
  throw ApiError(
      415, "the body must not have a Content-Encoding, got " + *encoding
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
