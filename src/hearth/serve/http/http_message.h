#pragma once
// Requests and answers of HTTP/1.1 as plain values. Knows no sockets.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::serve {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Names compare without case.
bool same_name(std::string_view a, std::string_view b);

struct HttpRequest {
  std::string method;
  std::string path;   // before any '?', as it was sent: nothing is decoded
  std::string query;  // after it
  int minor = 1;      // of HTTP/1.minor
  HttpHeaders headers;
  std::string body;
  // Where the request came from: the client's address, or for IPv6 the network
  // that a single client owns. Set by the server.
  std::string peer;

  // The value of the first header of that name, or null.
  const std::string* header(std::string_view name) const;
  // Whether the client wants the connection after this request.
  bool keeps_alive() const;
};

struct HttpAnswer {
  int status = 200;
  HttpHeaders headers;
  std::string body;
};

// How the bytes of a body end.
enum class HttpFraming : unsigned char { length, chunked, closing };

// "HTTP/1.1 200 OK ..." up to and with the empty line. Throws UsageError for a
// header that would end its line early.
std::string answer_head(
    const HttpAnswer& answer,
    HttpFraming framing,
    bool keep_alive
);

// One chunk of a chunked body; an empty text is the end of it.
std::string http_chunk(std::string_view text);

std::string_view reason_of(int status);

}  // namespace hearth::serve
