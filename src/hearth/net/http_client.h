#pragma once
// One HTTP/1.1 request at a time, over libcurl; what comes is handed over as it
// arrives. The bounds are the point: heads, waits and speeds that a broken or
// hostile server can stretch all have a limit, and a caller can give up at any
// time. Certificates are checked against the system's (SSL_CERT_FILE and
// SSL_CERT_DIR name others). Proxies are those of the environment (http_proxy,
// https_proxy, no_proxy); this machine itself is never asked through one.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/net/http_head.h"
#include "hearth/net/network_error.h"
#include "hearth/net/url.h"

namespace hearth::net {

struct HttpLimits {
  double connect_seconds = 15;
  double idle_seconds = 30;  // without a byte, once connected
  // A body must bring this many bytes in this many seconds, over and over, and
  // a head be there after as long.
  double slow_seconds = 60;
  std::size_t slow_bytes = std::size_t{16} << 10;
};

struct HttpRequest {
  Url url;
  bool head_only = false;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<std::string> post;  // sent as the body of a POST
};

struct HttpReceiver {
  // Called once, before the body; false leaves the body unread.
  std::function<bool(const HttpHead& head)> head = [](const auto&) {
    return true;
  };
  // Each piece of the body; false ends the transfer without an error.
  std::function<bool(std::string_view bytes)> body = [](auto) { return true; };
  // Called several times a second; throws to give up.
  std::function<void()> check = [] {};
};

// Redirects are answers like any other. What the receiver throws comes out of
// here. Throws NetworkError when the connection fails, stalls or ends before
// the body does, FormatError when the answer is not HTTP, and UsageError when
// the certificate is not to be trusted, which trying again does not mend.
HttpHead http_fetch(
    const HttpRequest& request,
    const HttpLimits& limits,
    const HttpReceiver& receiver
);

}  // namespace hearth::net
