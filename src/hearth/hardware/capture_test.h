#pragma once
// Machines captured as text (tests/fixtures/machines), for the tests.
#include <map>
#include <optional>
#include <string>

#include "hearth/base/atomic_file.h"
#include "hearth/hardware/linux_machine.h"

namespace hearth::hardware {

inline std::string capture_text(const std::string& name) {
  return read_text_file(
      std::string(HEARTH_SOURCE_DIR) + "/tests/fixtures/machines/" + name +
      ".txt"
  );
}

// Files of a capture: "=== PATH" starts one.
inline FileReader capture_reader(const std::string& name) {
  std::map<std::string, std::string> files;
  std::string text = capture_text(name), path;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("=== ")) {
      path = line.substr(4);
      files[path];
    } else {
      files[path] += line + "\n";
    }
  }
  return [files](const std::string& wanted) -> std::optional<std::string> {
    const auto it = files.find(wanted);
    if (it == files.end()) return std::nullopt;
    return it->second;
  };
}

}  // namespace hearth::hardware
