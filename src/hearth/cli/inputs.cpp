#include "hearth/cli/inputs.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>

#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

// Calls body(bytes) until the end of standard input.
template <class Body>
void each_block(Body body) {
  char buffer[1 << 16];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, stdin)) {
    body(std::string_view(buffer, got));
  }
  if (std::ferror(stdin)) throw IoError::from_errno("read", "standard input");
}

UsageError out_of_reach(
    const std::string& path,
    std::string_view what,
    const std::error_code& why
) {
  return UsageError(
      fmt::format(
          "the {} at '{}' is out of reach: {}", what, path, why.message()
      )
  );
}

}  // namespace

void require_in_reach(const std::string& path, std::string_view what) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::status_known(status) || status.type() == fs::file_type::unknown) {
    throw out_of_reach(path, what, error);
  }
  if (fs::is_directory(status) && access(path.c_str(), R_OK | X_OK) != 0) {
    throw out_of_reach(path, what, {errno, std::generic_category()});
  }
}

void require_input(const std::string& path, std::string_view what) {
  if (path == "-") return;
  require_in_reach(path, what);
  if (fs::exists(path)) return;
  throw UsageError(fmt::format("there is no {} at '{}'", what, path));
}

void require_input_file(const std::string& path, std::string_view what) {
  require_input(path, what);
  if (path == "-" || !fs::is_directory(path)) return;
  throw UsageError(
      fmt::format("the {} must be a file, but '{}' is a folder", what, path)
  );
}

void require_output_folder(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  if (path == "-" || folder.empty() || fs::is_directory(folder)) return;
  throw UsageError(
      fmt::format("there is no folder '{}' to write to", folder.string()),
      fmt::format("mkdir -p '{}' makes it", folder.string())
  );
}

std::string read_text(const std::string& path) {
  if (path != "-") {
    return read_text_file(path, std::numeric_limits<std::size_t>::max());
  }
  std::string out;
  each_block([&](std::string_view bytes) { out += bytes; });
  return out;
}

YamlNode read_yaml(const std::string& path, std::string_view what) {
  if (path == "-") return parse_yaml(read_text(path), "<stdin>");
  require_input(path, what);
  return read_yaml_file(path);
}

Json read_json(const std::string& path, std::string_view what) {
  if (path == "-") return parse_json(read_text(path), "<stdin>");
  require_input_file(path, what);
  return read_json_file(path);
}

void each_stdin_line(
    const std::function<void(std::string_view line, long number)>& body
) {
  std::string rest;
  long number = 0;
  const auto take = [&](std::string_view line) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") != line.npos) body(line, number);
  };
  each_block([&](std::string_view bytes) {
    rest += bytes;
    std::size_t begin = 0, end = 0;
    while ((end = rest.find('\n', begin)) != rest.npos) {
      take(std::string_view(rest).substr(begin, end - begin));
      begin = end + 1;
    }
    rest.erase(0, begin);
  });
  if (!rest.empty()) take(rest);
}

}  // namespace hearth::cli
