#pragma once
// In what order prompts are read: askers take turns, so that the long prompts
// of one keep no other waiting, and of one asker the shortest is read first.
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "hearth/infer/engine/engine.h"

namespace hearth::infer {

// Who takes turns with others: a scope, and within it whoever asks.
using Asker = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

Asker asker_of(const Request& request);

// Who had a turn when, and how many.
class Turns {
 public:
  struct Had {
    std::uint64_t last = 0, count = 0;  // last: 0 for who never had one
  };
  Had of(const Asker& asker) const;
  void take(const Asker& asker);

 private:
  std::map<Asker, Had> had_;
  std::uint64_t turn_ = 0;
};

struct UnreadPrompt {
  Asker asker;
  int unread = 0;  // tokens
};

// Places in `prompts`, which stand in the order they came. First is the asker
// whose last turn is longest ago. Of its prompts the one with the fewest tokens
// left is first; in every fourth turn the one that came first, so that a long
// one gets on whatever comes after it.
std::vector<std::size_t> reading_order(
    std::span<const UnreadPrompt> prompts,
    const Turns& turns
);

}  // namespace hearth::infer
