#include "hearth/hub/settings.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/env.h"
#include "hearth/base/error.h"

namespace hearth::hub {
namespace {

constexpr std::size_t kLongestToken = 4096;

std::optional<std::string> first_of(const char* name, const char* older) {
  auto value = env::get(name);
  return value ? value : env::get(older);
}

bool is_true(const std::optional<std::string>& value) {
  if (!value) return false;
  std::string word = *value;
  for (char& c : word) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return word == "1" || word == "ON" || word == "YES" || word == "TRUE";
}

std::string home_folder() {
  if (const auto home = env::get(env::kHfHome)) return expand_path(*home);
  const auto caches = env::get("XDG_CACHE_HOME");
  return expand_path(caches.value_or("~/.cache") + "/huggingface");
}

std::string cache_of_environment() {
  const auto cache = first_of(env::kHfHubCache, env::kHfHubCacheOld);
  return cache ? expand_path(*cache) : home_folder() + "/hub";
}

// A token is one printable word: anything else would break out of its header.
std::string clean_token(std::string text, const std::string& where) {
  const auto blank = [](char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  };
  while (!text.empty() && blank(text.back())) text.pop_back();
  text.erase(text.begin(), std::ranges::find_if_not(text, blank));
  const bool word = std::ranges::all_of(text, [](char c) {
    return static_cast<unsigned char>(c) > ' ' &&
           static_cast<unsigned char>(c) < 0x7f;
  });
  if (word && text.size() <= kLongestToken) return text;
  throw UsageError(
      fmt::format("the token of {} must be one printable word", where)
  );
}

std::string token_of_environment() {
  if (is_true(env::get(env::kHfNoToken))) return {};
  if (const auto token = first_of(env::kHfToken, env::kHfTokenOld)) {
    return clean_token(*token, env::kHfToken);
  }
  const auto named = env::get(env::kHfTokenPath);
  const std::string path =
      named ? expand_path(*named) : home_folder() + "/token";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  return clean_token(read_text_file(path, kLongestToken), path);
}

}  // namespace

std::string expand_path(const std::string& path) {
  std::string out, rest = path;
  if (rest == "~" || rest.starts_with("~/")) {
    out = env::get("HOME").value_or(".");
    rest.erase(0, 1);
  }
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const auto in_name = [&](std::size_t at) {
      const char c = at < rest.size() ? rest[at] : '\0';
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
             (c >= 'A' && c <= 'Z') || c == '_';
    };
    const bool braces =
        rest[i] == '$' && i + 1 < rest.size() && rest[i + 1] == '{';
    const std::size_t begin = i + (braces ? 2 : 1);
    std::size_t end = begin;
    while (in_name(end)) ++end;
    const bool variable = rest[i] == '$' && end > begin &&
                          (!braces || (end < rest.size() && rest[end] == '}'));
    const auto value = variable
                           ? env::get(rest.substr(begin, end - begin).c_str())
                           : std::optional<std::string>();
    if (!value) {
      out += rest[i];
      continue;
    }
    out += *value;
    i = braces ? end : end - 1;
  }
  return out;
}

Settings settings_from_environment() {
  Settings out;
  out.endpoint = net::parse_url(
      env::get(env::kHfEndpoint).value_or("https://huggingface.co"),
      env::kHfEndpoint
  );
  out.cache = cache_of_environment();
  out.token = token_of_environment();
  out.offline = is_true(first_of(env::kHfOffline, env::kHfOfflineOld));
  return out;
}

void check_endpoint(const Settings& settings) {
  const net::Url& endpoint = settings.endpoint;
  if (endpoint.secure || endpoint.is_loopback() || settings.allow_http) return;
  throw UsageError(
      fmt::format(
          "HF_ENDPOINT must be https, or http to this machine, got {}",
          endpoint.origin()
      ),
      "hearth pull --allow-http takes it: what comes is still held against its "
      "checksum, "
      "but others can read it, and your token"
  );
}

}  // namespace hearth::hub
