// The thin part of detection that talks to Linux.
#include <fstream>
#include <sstream>

#include <sys/utsname.h>

#include "hearth/base/thread_pool.h"
#include "hearth/hardware/linux_machine.h"

namespace hearth::hardware {

Machine detect() {
  const auto read = [](const std::string& path) -> std::optional<std::string> {
    const std::ifstream file(path);
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  };
  utsname name{};
  uname(&name);
  return describe_linux(read, name.machine, usable_cores());
}

}  // namespace hearth::hardware
