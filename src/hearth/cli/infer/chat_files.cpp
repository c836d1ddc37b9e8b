#include "hearth/cli/infer/chat_files.h"

#include <cerrno>

#include <sys/stat.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/cli/inputs.h"

namespace hearth::cli {

std::string with_home(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  return env::get("HOME").value_or(".") + path.substr(1);
}

void ChatFiles::save(const std::string& file, const std::string& text) {
  struct stat there{};
  if (lstat(file.c_str(), &there) == 0) {
    const auto known = texts_.find(file);
    if (known == texts_.end() || !S_ISREG(there.st_mode) ||
        read_text_file(file) != known->second) {
      throw UsageError(file + " is there already: choose another name");
    }
  } else if (errno != ENOENT) {
    throw IoError::from_errno("write", file);
  }
  write_file_atomically(file, text);
  texts_[file] = text;
}

std::string ChatFiles::read(const std::string& file) {
  require_input_file(file, "conversation");
  return read_text_file(file);
}

void ChatFiles::loaded(const std::string& file, const std::string& text) {
  texts_ = {{file, text}};
}

}  // namespace hearth::cli
