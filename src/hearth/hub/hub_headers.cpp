#include "hearth/hub/hub_headers.h"

#include <cmath>
#include <ctime>

namespace hearth::hub {
namespace {

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Seconds since 1970 of "Sun, 06 Nov 1994 08:49:37 GMT".
std::optional<double> parse_date(const std::string& text) {
  std::tm when{};
  const char* end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &when);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return static_cast<double>(timegm(&when));
}

}  // namespace

std::string normalize_etag(std::string_view value) {
  take(value, "W/");
  if (value.starts_with('"')) value.remove_prefix(1);
  if (value.ends_with('"')) value.remove_suffix(1);
  return std::string(value);
}

std::optional<ContentRange> parse_content_range(std::string_view value) {
  if (!take(value, "bytes ")) return std::nullopt;
  const std::size_t dash = value.find('-'), slash = value.find('/');
  if (dash == value.npos || slash == value.npos || slash < dash) {
    return std::nullopt;
  }
  const auto first = net::parse_decimal(value.substr(0, dash));
  const auto last =
      net::parse_decimal(value.substr(dash + 1, slash - dash - 1));
  const auto total = net::parse_decimal(value.substr(slash + 1));
  if (!first || !last || !total || *first > *last || *last >= *total) {
    return std::nullopt;
  }
  return ContentRange{*first, *last, *total};
}

std::optional<double> parse_retry_after(std::string_view value, double now) {
  if (const auto seconds = net::parse_decimal(value)) {
    return static_cast<double>(*seconds);
  }
  const auto when = parse_date(std::string(value));
  if (!when) return std::nullopt;
  return std::fmax(0, *when - now);
}

std::optional<std::string> next_link(std::string_view value) {
  // <address>; rel="next", <address>; rel="last"
  while (!value.empty()) {
    const std::size_t open = value.find('<'), close = value.find('>');
    if (open == value.npos || close == value.npos || close < open) break;
    const std::string_view address = value.substr(open + 1, close - open - 1);
    value.remove_prefix(close + 1);
    const std::string_view rest = value.substr(0, value.find('<'));
    if (rest.find("rel=\"next\"") != rest.npos ||
        rest.find("rel=next") != rest.npos) {
      return std::string(address);
    }
  }
  return std::nullopt;
}

void read_file_headers(const net::HttpHead& head, FileHeaders& into) {
  const auto commit = head.find("x-repo-commit");
  if (into.commit.empty() && commit) into.commit = *commit;
  const auto linked = head.find("x-linked-etag");
  const auto plain = head.find("etag");
  if (into.etag.empty() && (linked || plain)) {
    into.etag = normalize_etag(linked ? *linked : *plain);
  }
  if (into.size) return;
  if (const auto size = head.find("x-linked-size")) {
    into.size = net::parse_decimal(*size);
  } else if (const auto length = head.find("content-length");
             length && head.status == 200) {
    // A redirect's own length is that of its few words.
    into.size = net::parse_decimal(*length);
  }
}

}  // namespace hearth::hub
