#pragma once
// A lock that processes share through a file, as Hugging Face's tools take it
// (flock), so that two of us, or one of us and one of them, do not fetch the
// same file at the same time.
#include <functional>
#include <optional>
#include <string>

#include "hearth/base/file_handle.h"

namespace hearth::hub {

class FileLock {
 public:
  // Waits until it has the lock. `waiting` is called again and again while
  // another holds it; what it throws ends the wait.
  FileLock(const std::string& path, const std::function<void()>& waiting);

 private:
  FileHandle file_;  // closing it gives the lock back
};

}  // namespace hearth::hub
