#pragma once
// Reads a tool call while its text is still arriving: first the name of the
// tool, then its arguments piece by piece, word for word as the model writes
// them.
#include <string>
#include <string_view>
#include <vector>

#include "hearth/infer/tools/tool_calls.h"

namespace hearth::infer {

class ToolCallTeller {
 public:
  // `held` begins where calls do (with their mark, where the form has one) and
  // has grown since the last time. Adds what can be told now; of a call that
  // is written in an unusual way that is nothing, before it is whole. `names`
  // are those on offer; any, where there are none.
  void look(
      ToolForm form,
      std::string_view held,
      const std::vector<std::string>& names,
      std::vector<ToolCallPiece>& out
  );
  // Tells the reader that the call's text has ended.
  void end(std::vector<ToolCallPiece>& out);

  // Calls that were begun to be told, and the end of what they take of `held`.
  std::size_t told() const { return told_; }
  std::size_t size() const { return at_; }

 private:
  enum class Phase : unsigned char {
    start,      // before the first object
    object,     // before an object that may be a call
    arguments,  // in the value of its arguments
    rest,       // behind them, before the object's end
    over        // nothing more can be told
  };
  // What stands before the arguments; its size is 0 when more text is needed,
  // or when no further text could make it a call.
  struct Head {
    ToolCall call;
    std::size_t size = 0;
    bool hopeless = false;
  };

  void begin(ToolForm form, std::string_view held);
  static Head read_head(std::string_view object);
  static Head read_pair_head(std::string_view text);
  void take_head(
      const Head& head,
      const std::vector<std::string>& names,
      std::vector<ToolCallPiece>& out
  );
  // True at the end of the value, or of the object around it.
  bool scan(std::string_view held);

  Phase phase_ = Phase::start;
  bool pair_ = false;  // a name and its object, without an object around them
  std::size_t at_ = 0, told_ = 0;
  int depth_ = 0;
  bool quoted_ = false, escaped_ = false;
};

}  // namespace hearth::infer
