#pragma once
// The headers a hub answers with, read one at a time out of text that may be
// anything.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hearth/net/http_head.h"

namespace hearth::hub {

// Without quotes and weakness: W/"abc" is abc.
std::string normalize_etag(std::string_view value);

// "bytes 5-9/10": first 5, total 10. Nothing when it says anything else.
struct ContentRange {
  std::uint64_t first = 0, last = 0, total = 0;
};
std::optional<ContentRange> parse_content_range(std::string_view value);

// Seconds to wait, of a number or of a date; `now` is the time since 1970.
std::optional<double> parse_retry_after(std::string_view value, double now);

// The address of a Link header with rel="next"; nothing when it has none.
std::optional<std::string> next_link(std::string_view value);

// What the hub's own answer to a request for a file says about it, before any
// redirect to where the bytes are.
struct FileHeaders {
  std::string commit, etag;
  std::optional<std::uint64_t> size;
};
// Takes what `into` does not have yet: the first answer that says it is the
// hub's, later ones are a storage's.
void read_file_headers(const net::HttpHead& head, FileHeaders& into);

}  // namespace hearth::hub
