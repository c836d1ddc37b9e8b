#include "hearth/train/loop/metrics_log.h"

#include <filesystem>
#include <string_view>

#include <fcntl.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/mapped_file.h"

namespace hearth::train {
namespace {

bool has_step(const Json& line) {
  return line.is_object() && line.contains("step") &&
         line.at("step").is_number_integer();
}

// A line without its end; null when it is none of ours.
Json read_line(std::string_view text) {
  try {
    Json line = parse_json(text, "metrics.jsonl", {.max_bytes = 1 << 20});
    return has_step(line) ? line : Json();
  } catch (const FormatError&) {
    return {};
  }
}

}  // namespace

void MetricsLog::open(
    const std::string& path,
    const std::function<bool(long line, const Json& content)>& stays
) {
  namespace fs = std::filesystem;
  if (fs::exists(path) && fs::file_size(path) > 0) {
    const MappedFile file(path);
    const std::string_view all = file.text();
    AtomicFile kept(path);
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = all.find('\n', at);
      const bool whole = end != std::string_view::npos;  // else it is torn
      const Json line = whole ? read_line(all.substr(at, end - at)) : Json();
      if (!line.is_null() && stays(lines_, line)) {
        kept.write(all.substr(at, end + 1 - at));
        ++lines_;
      } else {
        ++dropped_;
      }
      if (!whole) {
        log_warning(
            "{}: its last line was not whole, as after a "
            "crash, and is left out",
            path
        );
        break;
      }
      at = end + 1;
    }
    if (dropped_ > 0) kept.commit();
  }
  file_ = FileHandle::open(path, O_WRONLY | O_CREAT | O_APPEND, "write");
}

MetricsLog::MetricsLog(const std::string& path, long last_step) {
  open(path, [last_step](long, const Json& line) {
    return line.at("step").get<long>() <= last_step;
  });
}

MetricsLog MetricsLog::with_lines(const std::string& path, long lines) {
  MetricsLog log;
  log.open(path, [lines](long line, const Json&) { return line < lines; });
  return log;
}

void MetricsLog::append(const Json& line) {
  if (!has_step(line)) {
    throw UsageError(
        "[train.metrics] a line must hold its step, got " + to_json_line(line)
    );
  }
  const std::string text = to_json_line(line) + "\n";
  file_.write(std::as_bytes(std::span(text)));
  ++lines_;
}

}  // namespace hearth::train
