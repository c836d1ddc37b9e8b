#pragma once
// A rival that is a Python package, in a process of its own that answers line
// by line, so that it takes turns with ours. Development only: nothing else
// starts an interpreter.
#include <memory>
#include <string>
#include <vector>

namespace hearth::bench {

class PythonPeer {
 public:
  // Runs a script with arguments under the Python that has the peers' packages
  // (`./dev test --peers` sets it up) or the one on the path. The script's
  // first line of output is its name, such as "tokenizers 0.23.3", or "absent"
  // when its package is not installed; then it answers each line with one.
  // nullptr when there is no Python, no package, or it failed to start.
  static std::shared_ptr<PythonPeer> start(
      const std::string& script,
      const std::vector<std::string>& arguments
  );
  // The same of any program that speaks so.
  static std::shared_ptr<PythonPeer> start_program(
      const std::vector<std::string>& words
  );
  ~PythonPeer();
  PythonPeer(const PythonPeer&) = delete;
  PythonPeer& operator=(const PythonPeer&) = delete;

  const std::string& name() const { return name_; }
  // Sends a line and waits for the answer. Throws Error when it is gone.
  std::string ask(const std::string& line);

 private:
  PythonPeer() = default;
  bool read_line(std::string& line);

  std::string name_, pending_;
  int to_ = -1, from_ = -1;
  long process_ = -1;
};

}  // namespace hearth::bench
