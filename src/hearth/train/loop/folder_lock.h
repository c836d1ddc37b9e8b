#pragma once
// One process at a time in a folder.
#include <string>
#include <string_view>

#include "hearth/base/file_handle.h"

namespace hearth::train {

// The file in the folder that is locked.
inline constexpr const char* kLockFile = "lock";

// Held as long as the handle is, and no longer than the process, however that
// ends. Throws UsageError when another one has it: "[area] FOLDER must not be
// in use, but process 12 DOES in it".
FileHandle lock_folder(
    const std::string& folder,
    std::string_view area,
    std::string_view does
);

}  // namespace hearth::train
