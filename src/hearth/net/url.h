#pragma once
// Addresses as a hub uses them: http or https, a host, a port, and what is
// asked for. User names in addresses are refused: they would end up in
// messages.
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::net {

struct Url {
  bool secure = true;
  std::string host;  // lower case; an IPv6 address without its brackets
  std::uint16_t port = 443;
  std::string target = "/";  // path and query, as they are sent

  // Scheme, host and port: who is asked. A token belongs to one of these.
  std::string origin() const;
  // Host and port as the Host header has them.
  std::string authority() const;
  // The URL for messages: without the query, which may hold a signature.
  std::string shown() const;
  bool is_loopback() const;
};

// `what` names the address in the UsageError, such as "HF_ENDPOINT".
Url parse_url(std::string_view text, std::string_view what);

// What a Location header means where `base` was asked: an address, a path, or
// one relative to it. Throws FormatError.
Url resolve_url(const Url& base, std::string_view location);

// Everything but letters, digits and -._~ as %XX; '/' stays where `keep_slash`.
std::string percent_encode(std::string_view text, bool keep_slash);

}  // namespace hearth::net
