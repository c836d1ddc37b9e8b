#include "hearth/base/log.h"

#include <mutex>
#include <utility>

namespace hearth {
namespace {

struct Log {
  std::mutex mutex;
  LogSink sink;
};

Log& instance() {
  static Log log;
  return log;
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  const std::lock_guard lock(instance().mutex);
  return std::exchange(instance().sink, std::move(sink));
}

void log(LogLevel level, std::string_view text) {
  const std::lock_guard lock(instance().mutex);
  if (instance().sink) instance().sink({level, std::string(text)});
}

}  // namespace hearth
