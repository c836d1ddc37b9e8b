#include "hearth/base/env.h"

#include <cstdlib>

namespace hearth::env {
namespace {

std::string home() {
  return get("HOME").value_or(".");
}

// The XDG rule: a variable, else a folder below home.
std::string place(const char* variable, const char* below_home) {
  if (auto folder = get(variable)) return *folder + "/hearth";
  return home() + below_home;
}

}  // namespace

std::optional<std::string> get(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string cache_folder() {
  if (auto folder = get(kCache)) return *folder;
#ifdef __APPLE__
  return home() + "/Library/Caches/hearth";
#else
  return place("XDG_CACHE_HOME", "/.cache/hearth");
#endif
}

std::string config_folder() {
  if (auto folder = get(kConfig)) return *folder;
  return place("XDG_CONFIG_HOME", "/.config/hearth");
}

}  // namespace hearth::env
