#pragma once
// Watches text as it streams for strings that end it. What might be the
// beginning of one is held back until it is decided.
#include <string>
#include <string_view>
#include <vector>

namespace hearth::infer {

class StopText {
 public:
  // Empty strings are refused: UsageError.
  explicit StopText(std::vector<std::string> stops);

  // The text that may be shown now. Once a stop string has come, text before
  // it is the last; found() is true and push() returns nothing more.
  std::string push(std::string_view text);
  // What was held back and turned out to be no stop string.
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace hearth::infer
