#pragma once
// Which model it is that a command runs, told by what is in its files and not
// by where they lie: a copy is the same model, one that was trained on is not.
#include <string>

#include "hearth/cli/model/model_flags.h"

namespace hearth::cli {

// 16 hexadecimal digits. Small files count whole, of large ones some blocks
// from all over: enough to tell models apart, in no time. Throws UsageError or
// IoError when there is no model.
std::string model_identity(const ModelFlags& flags);

}  // namespace hearth::cli
