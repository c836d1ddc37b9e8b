#pragma once
// Watches text as it streams for strings that end it. What might be the
// beginning of one is held back until it is decided.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::infer {

class StopText {
 public:
  // Asked where a stop string has come: whether the text before it may be all
  // of the text. Where it may not, the string is text like any other.
  using MayEnd = std::function<bool(const std::string& before)>;

  // Empty strings are refused: UsageError.
  explicit StopText(std::vector<std::string> stops, MayEnd may_end = {});

  // The text that may be shown now. Once a stop string has come, text before
  // it is the last; found() is true and push() returns nothing more.
  std::string push(std::string_view text);
  // What was held back and turned out to be no stop string.
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  MayEnd may_end_;
  std::string shown_;  // for may_end_
  std::string held_;
  bool found_ = false;

  std::size_t find_end() const;
  std::string show(std::size_t bytes);
};

}  // namespace hearth::infer
