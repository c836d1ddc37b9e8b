#include "hearth/net/url.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "hearth/base/ascii.h"
#include "hearth/base/error.h"
#include "hearth/base/quoted.h"

namespace hearth::net {
namespace {

constexpr std::size_t kLongestUrl = 16'384, kLongestHost = 255;

bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// Whether the text holds nothing that could end the request line or a header.
bool is_target(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return static_cast<unsigned char>(c) > ' ' &&
           static_cast<unsigned char>(c) < 0x7f;
  });
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kLongestHost &&
         std::ranges::all_of(text, [](char c) {
           return is_alnum(c) || c == '.' || c == '-' || c == '_' || c == ':';
         });
}

bool read_port(std::string_view text, std::uint16_t& port) {
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && next == end && port != 0;
}

// The host and port of what stands between "//" and the path.
bool read_authority(std::string_view text, Url& out) {
  if (text.find('@') != text.npos) return false;
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == text.npos) return false;
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
  } else if (const std::size_t colon = text.find(':'); colon != text.npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
    if (host.find(':') != host.npos) return false;
  }
  if (!port.empty() &&
      (port.front() != ':' || !read_port(port.substr(1), out.port))) {
    return false;
  }
  out.host = ascii_lower(host);
  return is_host(out.host);
}

bool read_url(std::string_view text, Url& out) {
  const std::size_t scheme = text.find("://");
  if (text.size() > kLongestUrl || scheme == text.npos) return false;
  const std::string name = ascii_lower(text.substr(0, scheme));
  if (name != "http" && name != "https") return false;
  out.secure = name == "https";
  out.port = out.secure ? 443 : 80;
  text.remove_prefix(scheme + 3);
  text = text.substr(0, text.find('#'));
  const std::size_t path = text.find_first_of("/?");
  if (!read_authority(text.substr(0, path), out)) return false;
  out.target = path == text.npos ? "/" : std::string(text.substr(path));
  if (out.target.front() == '?') out.target.insert(0, "/");
  return is_target(out.target);
}

}  // namespace

std::string Url::authority() const {
  const std::string name =
      host.find(':') == host.npos ? host : "[" + host + "]";
  return port == (secure ? 443 : 80) ? name : fmt::format("{}:{}", name, port);
}

std::string Url::origin() const {
  return (secure ? "https://" : "http://") + authority();
}

std::string Url::shown() const {
  return origin() + target.substr(0, target.find('?'));
}

bool Url::is_loopback() const {
  const auto dotted = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && std::ranges::all_of(host, dotted));
}

Url parse_url(std::string_view text, std::string_view what) {
  Url out;
  if (read_url(text, out)) return out;
  throw UsageError(
      fmt::format(
          "{} must be an address such as https://huggingface.co, got {}", what,
          // An address with a name and password in it is not repeated.
          text.find('@') == text.npos ? in_quotes(text) : "one with an '@'"
      )
  );
}

Url resolve_url(const Url& base, std::string_view location) {
  Url out = base;
  location = location.substr(0, location.find('#'));
  bool good = location.size() <= kLongestUrl && !location.empty();
  if (good && location.find("://") < location.find_first_of("/?")) {
    good = read_url(location, out);
  } else if (good && location.starts_with("//")) {
    good = read_url(
        (base.secure ? "https:" : "http:") + std::string(location), out
    );
  } else if (good) {
    const std::string_view path =
        std::string_view(base.target).substr(0, base.target.find('?'));
    out.target = location.front() == '/' ? std::string(location)
                 : location.front() == '?'
                     ? std::string(path) + std::string(location)
                     : std::string(path.substr(0, path.rfind('/') + 1)) +
                           std::string(location);
    good = is_target(out.target);
  }
  if (good) return out;
  throw FormatError(
      fmt::format(
          "{} redirects to {}, which is no address", base.shown(),
          in_quotes(location.substr(0, location.find('?')))
      )
  );
}

std::string percent_encode(std::string_view text, bool keep_slash) {
  constexpr std::string_view kPlain = "-._~";
  std::string out;
  for (const char c : text) {
    const bool plain = is_alnum(c) || kPlain.find(c) != kPlain.npos;
    if (plain || (c == '/' && keep_slash)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace hearth::net
