#pragma once
// One HTTP/1.1 request at a time, its body handed over as it arrives. Written
// here because the bounds are the point: heads, waits and speeds that a broken
// or hostile server can stretch all have a limit.
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/hub/connection.h"
#include "hearth/hub/http_head.h"
#include "hearth/hub/url.h"

namespace hearth::hub {

struct HttpLimits {
  double connect_seconds = 15;
  double idle_seconds = 30;
  // A body must bring this many bytes in this many seconds, over and over, and
  // a head be there after as long.
  double slow_seconds = 60;
  std::size_t slow_bytes = std::size_t{16} << 10;
};

struct HttpRequest {
  Url url;
  bool head_only = false;
  std::vector<std::pair<std::string, std::string>> headers;
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

// Throws NetworkError when the connection fails, stalls or ends before the
// body does, and FormatError when the answer is not HTTP.
HttpHead http_fetch(
    const HttpRequest& request,
    const HttpLimits& limits,
    const HttpReceiver& receiver
);

}  // namespace hearth::hub
