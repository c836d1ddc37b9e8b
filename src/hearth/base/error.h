#pragma once
// Every error the library throws. A message reads
//   [area.function] what must hold, got what
// and a hint, where there is one, says what to do. The library never prints
// and never exits; `cli` turns the kind into an exit code.
#include <stdexcept>
#include <string>
#include <string_view>

namespace hearth {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, std::string hint = {})
      : std::runtime_error(message), hint_(std::move(hint)) {}
  const std::string& hint() const noexcept { return hint_; }

 private:
  std::string hint_;
};

// The caller asked for something that cannot be: wrong flag, bad value.
class UsageError : public Error {
 public:
  using Error::Error;
};

// A file or message does not say what its format requires.
class FormatError : public UsageError {
 public:
  using UsageError::UsageError;
  // "FILE:LINE: what", or "FILE: what" when line is 0.
  static FormatError at(
      std::string_view file,
      long line,
      std::string_view what
  );
  // "FILE at byte OFFSET: what", for binary formats.
  static FormatError at_offset(
      std::string_view file,
      std::size_t offset,
      std::string_view what
  );
};

// The operating system refused: no such file, disk full, no permission.
class IoError : public Error {
 public:
  using Error::Error;
  // "cannot <action> PATH: <text of errno>"
  static IoError from_errno(std::string_view action, std::string_view path);
};

// An allocation would pass the byte budget. Nothing was allocated.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

// A gate, check or verification said no.
class CheckFailed : public Error {
 public:
  using Error::Error;
};

// The user interrupted; work was saved.
class Interrupted : public Error {
 public:
  using Error::Error;
};

// A message without the place in our code that it begins with, for those who
// only gave the input.
std::string plain_message(std::string_view what);

}  // namespace hearth
