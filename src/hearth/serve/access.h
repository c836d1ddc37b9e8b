#pragma once
// Who may ask: the checks on a request's headers before its body is looked at.
#include <string>
#include <vector>

#include "hearth/serve/api_keys.h"
#include "hearth/serve/http/http_message.h"

namespace hearth::serve {

// Which Host headers are accepted. A page of another site whose name was
// pointed at this machine (DNS rebinding) sends its own name. Without a key to
// keep it out, only known names are accepted, and addresses, which nobody can
// point elsewhere.
enum class HostRule : unsigned char { loopback, addresses, any };

struct AccessRules {
  ApiKeys keys;  // none: everybody may
  HostRule hosts = HostRule::loopback;
  std::vector<std::string> host_names;  // that are ours as well
  std::vector<std::string> cors_origins;
};

// Each throws ApiError: 403 for a name or an origin that is not ours, 401 for
// a missing or wrong key, 415 for a body that is not called JSON (which a form
// on another site could send without asking).
void check_host(const AccessRules& rules, const HttpRequest& request);
void check_origin(const AccessRules& rules, const HttpRequest& request);
void check_key(const AccessRules& rules, const HttpRequest& request);
void check_encoding(const HttpRequest& request);
void check_json_type(const HttpRequest& request);

// The headers that let a browser give the answer to a page of a named origin;
// none for other origins.
HttpHeaders cors_headers(const AccessRules& rules, const HttpRequest& request);

}  // namespace hearth::serve
