#pragma once
// The version of this binary.
#include <string>

namespace hearth::cli {

// What this binary is: version, MLX, instruction set, build type, compiler.
std::string version_text();

}  // namespace hearth::cli
