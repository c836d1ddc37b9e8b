#include "hearth/cli/infer/generate_answers.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{1} << 34;
constexpr const char* kHint =
    "give another file with -o, or --force to begin it anew";
// Every line begins so, one that was cut short too.
constexpr std::string_view kBegins = "{\"id\":";

struct stat status_of(int file, const std::string& path) {
  struct stat out{};
  if (fstat(file, &out) != 0) throw IoError::from_errno("look at", path);
  return out;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// A file system without locks gives no protection.
void lock(const FileHandle& file) {
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  throw UsageError(
      fmt::format("another process writes its answers to {}", file.path()),
      "wait for it, or give another file with -o"
  );
}

// The three parts of "of"; nothing when it is not of that form.
std::optional<std::array<std::string, 3>> parts_of(const Json& of) {
  constexpr std::size_t kDigits = 16;
  if (!of.is_string()) return std::nullopt;
  const auto& text = of.get_ref<const std::string&>();
  if (text.size() != 3 * kDigits + 2) return std::nullopt;
  std::array<std::string, 3> out;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t at = i * (kDigits + 1);
    out[i] = text.substr(at, kDigits);
    if (i > 0 && text[at - 1] != '.') return std::nullopt;
    if (out[i].find_first_not_of("0123456789abcdef") != std::string::npos) {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace

std::string BatchKey::of(const BatchLine& line) const {
  return fmt::format("{}.{}.{}", model, options, line.asks);
}

AnswersFile::AnswersFile(const std::string& path, BatchKey key, bool force)
    : path_(path), key_(std::move(key)) {
  if (path == "-") return;
  open();
  if (!regular_) return;
  if (force) {
    rewrite_ = status_of(file_.get(), path_).st_size > 0;
  } else {
    read();
  }
}

AnswersFile::~AnswersFile() {
  if (!made_ || written_) return;
  struct stat now{};
  if (fstat(file_.get(), &now) == 0 && now.st_size == 0) unlink(place_.c_str());
}

void AnswersFile::open() {
  std::error_code none;
  const auto status = fs::status(path_, none);
  if (fs::is_directory(status)) {
    throw UsageError(
        fmt::format("-o must be a file, and {} is a folder", path_)
    );
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    file_ = FileHandle::open(path_, O_WRONLY, "open");
    return;
  }
  regular_ = true, made_ = !fs::exists(status);
  // A link stays; its target is what is replaced.
  place_ = made_ ? path_ : fs::canonical(path_).string();
  // Another process may put a new file in the place of the one that was
  // opened, before it could be locked.
  for (;;) {
    file_ = FileHandle::open(place_, O_RDWR | O_CREAT | O_APPEND, "open");
    lock(file_);
    struct stat named{};
    if (stat(place_.c_str(), &named) == 0 &&
        same_file(named, status_of(file_.get(), path_))) {
      return;
    }
  }
}

void AnswersFile::read() {
  const std::string text = read_text_file(place_, kMostBytes);
  each_text_line(text, [&](std::string_view line, long number) {
    const bool last = line.data() + line.size() == text.data() + text.size();
    if (!read_line(line, number, last)) rewrite_ = true;
  });
}

// Whether the line stays as it is.
bool AnswersFile::read_line(std::string_view line, long number, bool last) {
  const auto foreign = [&] {
    return FormatError(
        fmt::format(
            "{}:{}: this is no answer of hearth generate", path_, number
        ),
        kHint
    );
  };
  Json json;
  try {
    json = parse_json(line, path_, {}, number);
  } catch (const FormatError&) {
    // A write that was cut short, where there are whole ones before it.
    const bool ours = line.starts_with(kBegins) || kBegins.starts_with(line);
    if (!last || order_.empty() || !ours) throw foreign();
    return false;
  }
  const auto field = [&](const char* key) {
    return json.is_object() && json.contains(key) ? json[key] : Json();
  };
  const bool failed = field("error").is_string();
  const auto parts = parts_of(field("of"));
  if (!parts || field("id").is_null() ||
      (!failed && !field("text").is_string())) {
    throw foreign();
  }
  const auto& [model, options, asks] = *parts;
  if (!failed && (model != key_.model || options != key_.options)) {
    throw UsageError(
        fmt::format(
            "{}:{} was answered {}", path_, number,
            model != key_.model ? "by another model" : "with other options"
        ),
        kHint
    );
  }
  const std::string id = to_json_line(json["id"]);
  const bool first =
      kept_.emplace(id, Kept{std::string(line), asks, failed}).second;
  if (first) order_.push_back(id);
  return first && !last;
}

AnswersFile::Before AnswersFile::take_up(std::vector<BatchLine>& lines) {
  Before out;
  std::erase_if(lines, [&](const BatchLine& line) {
    const auto at = kept_.find(to_json_line(line.id));
    if (at == kept_.end()) return false;
    const bool answered = !at->second.failed && at->second.asks == line.asks;
    out.answered += answered ? 1 : 0;
    if (answered) return true;
    ++(at->second.failed ? out.failed : out.changed);
    kept_.erase(at);
    rewrite_ = true;
    return false;
  });
  return out;
}

void AnswersFile::begin() {
  if (!rewrite_) return;
  std::string text;
  for (const std::string& id : order_) {
    const auto at = kept_.find(id);
    if (at != kept_.end()) text += at->second.text + "\n";
  }
  write_file_atomically(place_, text);
  open();
}

void AnswersFile::append(const BatchLine& line, Json answer) {
  answer["of"] = key_.of(line);
  const std::string text = to_json_line(answer) + "\n";
  written_ = true;
  if (path_ != "-") return file_.write(std::as_bytes(std::span(text)));
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
      std::fflush(stdout) != 0) {
    throw IoError::from_errno("write to", "standard output");
  }
}

void require_two_files(const std::string& in, const std::string& out) {
  struct stat from{}, to{};
  const bool known =
      (in == "-" ? fstat(0, &from) : stat(in.c_str(), &from)) == 0 &&
      (out == "-" ? fstat(1, &to) : stat(out.c_str(), &to)) == 0;
  if (!known || !S_ISREG(from.st_mode) || !same_file(from, to)) return;
  throw UsageError(
      "the answers would be written over the prompts: both are one file"
  );
}

}  // namespace hearth::cli
