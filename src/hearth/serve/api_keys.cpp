#include "hearth/serve/api_keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/serve/http/http_message.h"

namespace hearth::serve {
namespace {

constexpr std::size_t kShortest = 16, kLongest = 512;
constexpr std::string_view kScheme = "Bearer ";

void add_lines(std::string_view text, const std::string& file, ApiKeys& keys) {
  long number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.front() == '#') continue;
    const bool plain =
        std::ranges::all_of(line, [](char c) { return c > ' ' && c < 0x7F; });
    if (!plain || line.size() < kShortest || line.size() > kLongest) {
      throw FormatError::at(
          file, number,
          fmt::format(
              "a key must be {} to {} printable characters without spaces",
              kShortest, kLongest
          )
      );
    }
    keys.add(std::string(line));
  }
}

}  // namespace

bool same_secret(std::string_view a, std::string_view b) {
  // The length of a key is no secret; its bytes are.
  volatile unsigned char different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    different = static_cast<unsigned char>(
        different |
        (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other))
    );
  }
  return different == 0;
}

void ApiKeys::add(std::string key) {
  keys_.push_back(std::move(key));
}

ApiKeys ApiKeys::load(const std::vector<std::string>& files) {
  ApiKeys out;
  for (const auto& file : files) {
    const std::size_t before = out.size();
    add_lines(read_text_file(file), file, out);
    if (out.size() == before) throw FormatError::at(file, 0, "holds no key");
  }
  return out;
}

bool ApiKeys::accepts(std::string_view key) const {
  bool found = false;
  for (const auto& known : keys_) {
    const bool same = same_secret(key, known);
    found = same || found;
  }
  return found;
}

std::string_view ApiKeys::key_in_header(std::string_view value) {
  return value.substr(std::min(kScheme.size(), value.size()));
}

bool ApiKeys::accepts_header(std::string_view value) const {
  if (value.size() < kScheme.size() ||
      value.size() > kLongest + kScheme.size()) {
    return false;
  }
  return same_name(value.substr(0, kScheme.size()), kScheme) &&
         accepts(value.substr(kScheme.size()));
}

}  // namespace hearth::serve
