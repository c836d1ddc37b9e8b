#pragma once
// Quotes names from files for messages of one line.
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace hearth::io {

// The name in quotes, control characters escaped, cut where it would fill the
// screen.
inline std::string in_quotes(std::string_view name) {
  constexpr std::size_t kMost = 100;
  if (name.size() <= kMost) return fmt::format("{:?}", name);
  return fmt::format("{:?}...", name.substr(0, kMost));
}

}  // namespace hearth::io
