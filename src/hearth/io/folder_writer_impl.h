#pragma once
// A folder that is written under another name beside its place and then
// renamed.
#include <string>

namespace hearth::io {

class AtomicFolder {
 public:
  // Throws UsageError when the target is there and may not be replaced: force
  // is off, or it holds something and no file called `mark`.
  AtomicFolder(const std::string& path, bool force, const std::string& mark);
  // Removes what was written unless commit() was reached.
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  std::string file(const std::string& name) const;
  // Puts the folder in place. Where one is replaced the old one is moved away
  // first and removed last; a crash between leaves both under other names.
  void commit();

 private:
  std::string path_, temporary_;
};

}  // namespace hearth::io
