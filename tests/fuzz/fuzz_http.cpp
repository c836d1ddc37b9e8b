// Any bytes of a connection, cut anywhere: the same requests come out however
// they are cut, and what comes out is within its limits.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/http/http_parser.h"
#include "hearth/serve/page_files.h"
#include "hearth/serve/routes.h"

// The real ones are written by the build of an area that is not built here.
std::span<const hearth::serve::BuiltinFile> hearth::serve::page_files() {
  static constexpr BuiltinFile kFiles[] = {{"page/index.html", "page"}};
  return kFiles;
}

namespace {

using hearth::serve::HttpLimits;
using hearth::serve::HttpParser;
using hearth::serve::HttpRequest;

constexpr HttpLimits kLimits{
    .max_target = 64,
    .max_head = 512,
    .max_headers = 8,
    .max_body = 256
};

struct Outcome {
  std::vector<HttpRequest> requests;
  int fault = 0;
};

Outcome read(std::string_view bytes, std::size_t cut) {
  Outcome out;
  HttpParser parser(kLimits);
  std::string waiting;
  while (!bytes.empty() || !waiting.empty()) {
    const auto n = std::min(cut, bytes.size());
    waiting += bytes.substr(0, n);
    bytes.remove_prefix(n);
    waiting.erase(0, parser.feed(waiting));
    if (parser.fault()) {
      out.fault = parser.fault()->status;
      return out;
    }
    if (!parser.done()) {
      if (bytes.empty()) return out;
      continue;
    }
    out.requests.push_back(parser.take());
  }
  return out;
}

void check(const HttpRequest& r) {
  const bool holds = r.path.size() + r.query.size() <= kLimits.max_target &&
                     r.headers.size() <= kLimits.max_headers &&
                     r.body.size() <= kLimits.max_body;
  if (!holds) std::abort();
  try {
    hearth::serve::check_method(
        hearth::serve::find_route(r.path).route, r.method
    );
  } catch (const hearth::serve::ApiError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), n);
  const Outcome whole = read(bytes, n + 1);
  for (const auto& request : whole.requests) check(request);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{7}}) {
    const Outcome parts = read(bytes, cut);
    bool same = parts.requests.size() == whole.requests.size() &&
                (parts.fault == 0) == (whole.fault == 0);
    for (std::size_t i = 0; same && i < whole.requests.size(); ++i) {
      same = parts.requests[i].body == whole.requests[i].body &&
             parts.requests[i].headers == whole.requests[i].headers;
    }
    if (!same) std::abort();
  }
  return 0;
}
