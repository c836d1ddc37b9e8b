#include "hearth/cli/generate_batch_lines.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/spelling.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 32;

// One line's fields, each taken once and of its own type.
class LineReader {
 public:
  LineReader(const Json& json, const std::string& file, long line)
      : json_(json), file_(file), line_(line) {
    if (!json.is_object()) fail("a request must be an object");
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError::at(file_, line_, what);
  }
  const Json* find(
      const char* key,
      bool (Json::*is)() const noexcept,
      const char* kind
  ) {
    known_.emplace_back(key);
    const auto at = json_.find(key);
    if (at == json_.end()) return nullptr;
    if (!((*at).*is)()) {
      fail(fmt::format("{} must be {}, got {}", key, kind, to_json_line(*at)));
    }
    return &*at;
  }
  template <class T>
  std::optional<T> get(
      const char* key,
      bool (Json::*is)() const noexcept,
      const char* kind
  ) {
    const Json* value = find(key, is, kind);
    if (value == nullptr) return std::nullopt;
    return value->get<T>();
  }
  void refuse_others() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) {
        continue;
      }
      fail(
          fmt::format("there is no key '{}'{}", key, did_you_mean(key, known_))
      );
    }
  }

 private:
  const Json& json_;
  const std::string& file_;
  long line_;
  std::vector<std::string> known_;
};

BatchLine parse_line(
    std::string_view text,
    const std::string& file,
    long number
) {
  const Json json = parse_json(text, fmt::format("{}:{}", file, number));
  LineReader r(json, file, number);
  BatchLine out;
  out.line = number;
  out.id = json.contains("id") ? json["id"] : Json(number);
  if (!out.id.is_string() && !out.id.is_number_integer()) {
    r.fail("id must be a string or a whole number");
  }
  r.find("id", &Json::is_primitive, "a string or a whole number");
  out.prompt = r.get<std::string>("prompt", &Json::is_string, "a string");
  if (const Json* m = r.find("messages", &Json::is_array, "a list")) {
    out.messages = *m;
  }
  if (out.prompt.has_value() == out.messages.is_array()) {
    r.fail("a request must have one of prompt and messages");
  }
  const char* whole = "a whole number of 0 or more";
  const auto most =
      r.get<std::uint64_t>("max_tokens", &Json::is_number_unsigned, whole);
  if (most && *most > INT32_MAX) r.fail("max_tokens is too large");
  if (most) out.max_tokens = static_cast<int>(*most);
  out.seed = r.get<std::uint64_t>("seed", &Json::is_number_unsigned, whole);
  out.temperature = r.get<double>("temperature", &Json::is_number, "a number");
  out.top_p = r.get<double>("top_p", &Json::is_number, "a number");
  if (const Json* stop = r.find("stop", &Json::is_array, "a list of strings")) {
    out.stop.emplace();
    for (const Json& s : *stop) {
      if (!s.is_string()) r.fail("stop must be a list of strings");
      out.stop->push_back(s.get<std::string>());
    }
  }
  r.refuse_others();
  return out;
}

template <class Body>
void each_line(const std::string& text, const Body& body) {
  std::size_t begin = 0;
  for (long number = 1; begin < text.size(); ++number) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      body(line, number);
    }
    begin = end + 1;
  }
}

}  // namespace

std::vector<BatchLine> parse_batch(
    const std::string& text,
    const std::string& file
) {
  std::vector<BatchLine> out;
  std::set<std::string> ids;
  each_line(text, [&](std::string_view line, long number) {
    out.push_back(parse_line(line, file, number));
    const std::string id = to_json_line(out.back().id);
    if (!ids.insert(id).second) {
      throw FormatError::at(
          file, number, fmt::format("an earlier line has the id {} too", id)
      );
    }
  });
  return out;
}

std::set<std::string> take_up(const std::string& path) {
  std::set<std::string> ids;
  if (path == "-" || !std::filesystem::exists(path)) return ids;
  std::string text = read_text_file(path, kMostBytes);
  const auto last = text.rfind('\n');
  const std::size_t whole = last == std::string::npos ? 0 : last + 1;
  if (whole < text.size()) {
    if (truncate(path.c_str(), static_cast<off_t>(whole)) != 0) {
      throw IoError::from_errno("cut the last line of", path);
    }
    text.resize(whole);
  }
  each_line(text, [&](std::string_view line, long number) {
    const Json json = parse_json(line, fmt::format("{}:{}", path, number));
    if (!json.is_object() || !json.contains("id")) {
      throw FormatError::at(
          path, number, "this is no answer of a batch: it has no id"
      );
    }
    ids.insert(to_json_line(json["id"]));
  });
  return ids;
}

LineFile::LineFile(const std::string& path) : path_(path), file_(1) {
  if (path == "-") return;
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) throw IoError::from_errno("open", path);
}

LineFile::~LineFile() {
  if (file_ > 2) close(file_);
}

void LineFile::append(const std::string& line) {
  const std::string whole = line + "\n";
  std::size_t done = 0;
  while (done < whole.size()) {
    const auto n = write(file_, whole.data() + done, whole.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError::from_errno("write to", path_);
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace hearth::cli
