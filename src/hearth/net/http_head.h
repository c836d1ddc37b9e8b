#pragma once
// The head of an HTTP/1.1 response, out of bytes that may be anything: status
// and headers. Bounded in every direction.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::net {

inline constexpr std::size_t kMostHeadBytes = std::size_t{64} << 10;

struct HttpHead {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names lower case

  // The first of that name (lower case); nothing when there is none.
  std::optional<std::string_view> find(std::string_view name) const;
  bool is_redirect() const;
};

// text is everything up to the empty line. Throws FormatError.
HttpHead parse_http_head(std::string_view text);

// Throws FormatError when what the headers say of the body contradicts itself,
// or when it is compressed, which was not asked for.
void check_body_headers(const HttpHead& head, bool head_request);

// A number of decimal digits alone; nothing when it is anything else or large.
std::optional<std::uint64_t> parse_decimal(std::string_view text);

}  // namespace hearth::net
