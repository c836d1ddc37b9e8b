#pragma once
// Watches text as it streams for strings that end it. What might be the
// beginning of one is held back until it is decided. A byte of text costs the
// same for each string, however much is held back.
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::text {

constexpr std::size_t kMaxStopBytes = 1024;  // of one stop string

// Throws UsageError for an empty string or one that is too long; `who` begins
// its message: "infer.generate".
void check_stops(std::span<const std::string> stops, std::string_view who);

class StopText {
 public:
  // Asked where a stop string has come: whether the text before it may be all
  // of the text. Where it may not, the string is text like any other. The
  // answer for a text must not change.
  using MayEnd = std::function<bool(std::string_view before)>;

  // Empty strings are refused: UsageError.
  explicit StopText(std::vector<std::string> stops, MayEnd may_end = {});

  // The text that may be shown now. Once a stop string has come, text before
  // it is the last; found() is true and push() returns nothing more.
  std::string push(std::string_view text);
  // What is held back and is no stop string, because none goes on from here:
  // the text has ended, or something that is no text comes next.
  std::string finish();
  bool found() const { return found_; }
  // The whole text so far, held back or not.
  std::string_view text() const { return text_; }

 private:
  // One of the strings, and how much of its beginning the text ends with. back:
  // for each of its beginnings, how much of it is left when the next byte is
  // another one: the longest shorter beginning that it ends with (the search
  // of Knuth, Morris and Pratt).
  struct Stop {
    explicit Stop(std::string words);
    // True where the string ends with this byte.
    bool read(char byte);

    std::string text;
    std::vector<std::size_t> back;
    std::size_t matched = 0;
  };

  std::vector<Stop> stops_;
  MayEnd may_end_;
  std::string text_;
  std::size_t shown_ = 0;  // bytes of text_
  bool found_ = false;

  bool may_end(std::size_t at) const;
  std::string show(std::size_t until);
};

}  // namespace hearth::text
