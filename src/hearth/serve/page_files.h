#pragma once
// The files of page/, carried inside the binary. CMake writes the definition.
#include <span>
#include <string_view>

namespace hearth::serve {

struct BuiltinFile {
  std::string_view name, text;
};
std::span<const BuiltinFile> page_files();

}  // namespace hearth::serve
