#pragma once
// Where the library says what it is doing. It never writes to a terminal
// itself: `cli` installs a sink, tests install theirs, and the default drops
// everything.
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace hearth {

enum class LogLevel { kDebug, kInfo, kWarning };

struct LogRecord {
  LogLevel level;
  std::string text;
};

using LogSink = std::function<void(const LogRecord&)>;

// Replaces the sink and returns the one before it. Calls to a sink are
// serialised.
LogSink set_log_sink(LogSink sink);
void log(LogLevel level, std::string_view text);

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hearth
