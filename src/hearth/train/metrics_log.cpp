#include "hearth/train/metrics_log.h"

#include <filesystem>
#include <string_view>

#include <fcntl.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/mapped_file.h"

namespace hearth::train {
namespace {

bool has_step(const Json& line) {
  return line.is_object() && line.contains("step") &&
         line.at("step").is_number_integer();
}

// Whether a line, without its end, is of a step up to last.
bool keeps(std::string_view text, long last) {
  try {
    const Json line = parse_json(text, "metrics.jsonl", {.max_bytes = 1 << 20});
    return has_step(line) && line.at("step").get<long>() <= last;
  } catch (const FormatError&) {
    return false;
  }
}

// Writes the lines that stay to a new version of the file; returns how many
// did not.
long cut(const std::string& path, long last) {
  const MappedFile file(path);
  const std::string_view all = file.text();
  AtomicFile kept(path);
  long dropped = 0;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = all.find('\n', at);
    if (end == std::string_view::npos) {
      ++dropped;  // torn
      break;
    }
    if (keeps(all.substr(at, end - at), last)) {
      kept.write(all.substr(at, end + 1 - at));
    } else {
      ++dropped;
    }
    at = end + 1;
  }
  if (dropped > 0) kept.commit();
  return dropped;
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, long last_step) {
  int flags = O_WRONLY | O_CREAT | O_APPEND;
  if (last_step < 0) {
    flags |= O_TRUNC;
  } else if (std::filesystem::exists(path) &&
             std::filesystem::file_size(path) > 0) {
    dropped_ = cut(path, last_step);
  }
  file_ = FileHandle::open(path, flags, "write");
}

void MetricsLog::append(const Json& line) {
  if (!has_step(line)) {
    throw UsageError(
        "[train.metrics] a line must hold its step, got " + to_json_line(line)
    );
  }
  const std::string text = to_json_line(line) + "\n";
  file_.write(std::as_bytes(std::span(text)));
}

}  // namespace hearth::train
