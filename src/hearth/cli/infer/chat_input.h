#pragma once
// Lines a person types, and Ctrl-C as a question: it stops what is being
// answered or drops what is being typed, never the program.
#include <optional>
#include <string>

namespace hearth::cli {

// While one lives, Ctrl-C is only noted.
class CtrlC {
 public:
  CtrlC();
  ~CtrlC();
  CtrlC(const CtrlC&) = delete;
  CtrlC& operator=(const CtrlC&) = delete;

  // Whether it was pressed since the last forget().
  static bool pressed();
  static void forget();
};

class ChatInput {
 public:
  struct Line {
    std::string text;
    bool dropped = false;  // Ctrl-C came instead
  };
  // The next line; nothing at the end of the input. A backslash at the end of a
  // line joins the next to it.
  std::optional<Line> next();
  static bool is_terminal();

 private:
  std::string buffer_;
  bool ended_ = false;

  std::optional<Line> one_line();
};

}  // namespace hearth::cli
