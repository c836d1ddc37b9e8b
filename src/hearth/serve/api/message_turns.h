#pragma once
// Messages in turns that a template can write: some know one system message,
// which comes first, some know none, and some want user and assistant to
// alternate.
#include "hearth/base/json.h"

namespace hearth::serve {

// Each goes further than the one before it.
enum class TurnForm : unsigned char {
  own,         // as the client sent them
  joined,      // those of one role that follow each other are one
  one_system,  // a system message behind other words is the user's
  no_system,   // each system message is the user's
  user_first   // an empty one of the user's before an assistant's first
};

Json in_turns(const Json& messages, TurnForm form);

}  // namespace hearth::serve
