#include "hearth/base/units.h"

#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth {

std::string format_bytes(std::size_t bytes) {
  static constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 99.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

std::string format_count(double count) {
  static constexpr std::array kUnits{"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (std::abs(count) >= 999.5 && unit + 1 < kUnits.size()) {
    count /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.4g}", count);
  return fmt::format("{:.3g}{}", count, kUnits[unit]);
}

std::size_t parse_bytes(std::string_view text, std::string_view what) {
  const auto refuse = [&] {
    throw UsageError(
        fmt::format("{} must be a size such as 6G, got '{}'", what, text)
    );
  };
  const std::string copy(text);
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || !(number >= 0)) refuse();
  std::string_view unit = std::string_view(copy).substr(
      static_cast<std::size_t>(end - copy.c_str())
  );
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    constexpr std::string_view kLetters = "KMGT";
    const std::size_t power = kLetters.find(unit[0] & ~0x20);
    const std::string_view rest = unit.substr(1);
    const bool known = rest.empty() || rest == "B" || rest == "b" ||
                       rest == "iB" || rest == "ib";
    if (power == std::string_view::npos || !known) refuse();
    for (std::size_t i = 0; i <= power; ++i) factor *= 1024;
  }
  if (number * factor > 0x1p62) refuse();
  return static_cast<std::size_t>(number * factor);
}

}  // namespace hearth
