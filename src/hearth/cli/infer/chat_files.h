#pragma once
// The files that a conversation was kept in or came from: those alone may be
// replaced, as long as nobody else has changed them.
#include <map>
#include <string>

namespace hearth::cli {

// "~/x" is in the home folder, as a shell would have it.
std::string with_home(const std::string& path);

class ChatFiles {
 public:
  // Throws UsageError when something else is there, IoError when it cannot be
  // written.
  void save(const std::string& file, const std::string& text);
  // The file's text. Throws UsageError when there is none.
  static std::string read(const std::string& file);
  // The conversation is this file's from now on.
  void loaded(const std::string& file, const std::string& text);
  // The conversation is a new one.
  void forget() { texts_.clear(); }

 private:
  std::map<std::string, std::string> texts_;  // as they were last seen
};

}  // namespace hearth::cli
