#include "hearth/base/error.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace hearth {

FormatError FormatError::at(
    std::string_view file,
    long line,
    std::string_view what
) {
  if (line <= 0) return FormatError(fmt::format("{}: {}", file, what));
  return FormatError(fmt::format("{}:{}: {}", file, line, what));
}

FormatError FormatError::at_offset(
    std::string_view file,
    std::size_t offset,
    std::string_view what
) {
  return FormatError(fmt::format("{} at byte {}: {}", file, offset, what));
}

IoError IoError::from_errno(std::string_view action, std::string_view path) {
  const int code = errno;
  const std::string reason = std::generic_category().message(code);
  std::string hint;
  if (code == ENOSPC) hint = "free some space, then run the command again";
  return IoError(fmt::format("cannot {} {}: {}", action, path, reason), hint);
}

std::string plain_message(std::string_view what) {
  const auto end = what.find("] ");
  const bool placed = what.starts_with('[') && end != what.npos &&
                      what.substr(0, end).find(' ') == what.npos;
  return std::string(placed ? what.substr(end + 2) : what);
}

}  // namespace hearth
