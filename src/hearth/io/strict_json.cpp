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

// Sees every key as it is read, before a repeated one replaces the first. (A
// callback of the library's own parser would do too, but takes time quadratic
// in the number of keys.)
class KeyGuard final : public nlohmann::json_sax<SortedJson> {
 public:
  KeyGuard(std::string_view name, std::size_t offset, int max_depth)
      : name_(name), offset_(offset), max_depth_(max_depth) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    go_down();
    seen_.emplace_back();
    return true;
  }
  bool key(string_t& key) override {
    if (!seen_.back().insert(key).second) {
      fail(offset_, fmt::format("{} is given twice", in_quotes(key)));
    }
    return true;
  }
  bool end_object() override {
    seen_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    go_down();
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(
      std::size_t at,
      const std::string&,
      const nlohmann::detail::exception& e
  ) override {
    const bool number = e.id / 100 == 4;  // out of range
    fail(
        offset_ + (at > 0 ? at - 1 : 0),
        number ? "JSON with an impossible number" : "not JSON"
    );
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string_view what) const {
    throw FormatError::at_offset(name_, at, what);
  }
  void go_down() {
    if (++depth_ > max_depth_) {
      fail(offset_, fmt::format("JSON must nest at most {} deep", max_depth_));
    }
  }

  std::string_view name_;
  std::size_t offset_;
  int max_depth_, depth_ = 0;
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
  KeyGuard guard(name, offset, limits.max_depth);
  SortedJson::sax_parse(text, &guard);
  return SortedJson::parse(text);
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
