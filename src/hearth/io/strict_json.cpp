#include "hearth/io/strict_json.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/io/message_impl.h"

namespace hearth::io {
namespace {

constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20;
constexpr std::size_t kMostConfigKeys = 20'000;

// Sees every key as the parser meets it, before values swallow each other.
class KeyGuard {
 public:
  KeyGuard(std::string_view name, std::size_t offset, int max_depth)
      : name_(name), offset_(offset), max_depth_(max_depth) {}

  bool operator()(int depth, SortedJson::parse_event_t event, SortedJson& v) {
    using Event = SortedJson::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= max_depth_) {
        fail(fmt::format("JSON must nest at most {} deep", max_depth_));
      }
    }
    if (event == Event::object_start) {
      seen_.emplace_back();
    } else if (event == Event::object_end) {
      seen_.pop_back();
    } else if (event == Event::key) {
      const auto& key = v.get_ref<const std::string&>();
      if (!seen_.back().insert(key).second) {
        fail(fmt::format("{} is given twice", in_quotes(key)));
      }
    }
    return true;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError::at_offset(name_, offset_, what);
  }
  std::string_view name_;
  std::size_t offset_;
  int max_depth_;
  std::vector<std::set<std::string>> seen_;
};

}  // namespace

SortedJson parse_strict_json(
    std::string_view text,
    std::string_view name,
    std::size_t offset,
    const JsonLimits& limits
) {
  if (text.size() > limits.max_bytes) {
    throw FormatError::at_offset(
        name, offset,
        fmt::format(
            "JSON must be at most {}, got {}", format_bytes(limits.max_bytes),
            format_bytes(text.size())
        )
    );
  }
  try {
    return SortedJson::parse(text, KeyGuard(name, offset, limits.max_depth));
  } catch (const SortedJson::parse_error& e) {
    throw FormatError::at_offset(
        name, offset + (e.byte > 0 ? e.byte - 1 : 0), "not JSON"
    );
  } catch (const SortedJson::exception&) {
    throw FormatError::at_offset(
        name, offset, "JSON with an impossible number"
    );
  }
}

Json parse_config(std::string_view text, const std::string& name) {
  // First for its errors, which say line and column; order is kept there.
  const JsonLimits limits{kMostConfigBytes, 32};
  const auto keys =
      static_cast<std::size_t>(std::count(text.begin(), text.end(), ':'));
  if (keys > kMostConfigKeys) {
    throw FormatError::at(
        name, 0,
        fmt::format("a config must have at most {} keys", kMostConfigKeys)
    );
  }
  Json config = parse_json(text, name, limits);
  parse_strict_json(text, name, 0, limits);
  if (!config.is_object()) {
    throw FormatError::at(name, 0, "must be a JSON object");
  }
  return config;
}

Json read_config_file(const std::string& path) {
  return parse_config(read_text_file(path, kMostConfigBytes), path);
}

}  // namespace hearth::io
