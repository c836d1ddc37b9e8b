#pragma once
// Names of files that are being written. They are drawn at random, because a
// process number tells nobody apart: every container has a process 1.
#include <string>
#include <string_view>

#include "hearth/base/file_handle.h"

namespace hearth {

// "PATH.tmp-" and sixteen random hexadecimal digits.
std::string temporary_name(std::string_view path);
// Whether the name is one of those, of this version or an earlier one.
bool is_temporary_name(std::string_view name);

// A new file beside path that only this process has. It stays locked while it
// is open, which tells a process that cleans up that somebody is writing it.
FileHandle create_temporary(const std::string& path, int mode = 0644);
// Whether a process has the file open that create_temporary() made. True also
// where the file system knows no locks.
bool is_being_written(const std::string& temporary);

}  // namespace hearth
