#pragma once
// The files of profiles/, carried inside the binary so that it works wherever
// it is put. CMake writes the definition.
#include <span>
#include <string_view>

namespace hearth::hardware {

struct BuiltinFile {
  std::string_view name, text;
};
std::span<const BuiltinFile> builtin_profiles();

}  // namespace hearth::hardware
