#pragma once
// The bodies of GPU kernels, carried inside the binary as text. CMake writes
// the definition.
#include <span>
#include <string_view>

namespace hearth::ops {

struct BuiltinFile {
  std::string_view name, text;
};
std::span<const BuiltinFile> gpu_kernel_files();

}  // namespace hearth::ops
