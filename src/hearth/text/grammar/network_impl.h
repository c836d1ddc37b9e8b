#pragma once
// The automaton while it is being made: edges in one list, in no order.
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/text/grammar/automaton.h"

namespace hearth::text::grammar {

struct Network {
  struct Bytes {
    StateId from;
    ByteEdge edge;
  };
  struct Call {
    StateId from;
    CallEdge edge;
  };
  struct Skip {
    StateId from, to;
  };
  struct Entry {
    std::string name;
    StateId start = 0, end = 0;
  };
  // A part that is repeated min to max times, from `from` to `to`. Its states
  // are there once, from `first` on; `next` stands for the first state of the
  // next time.
  struct Loop {
    StateId from = 0, to = 0;
    StateId first = 0, next = 0;
    std::int32_t min = 0, max = 0;
  };

  std::vector<Bytes> bytes;
  std::vector<Call> calls;
  std::vector<Skip> skips;
  std::vector<Loop> loops;
  std::vector<Entry> rules;
  std::int32_t root = 0;
  std::int32_t states = 1;  // kDone is there already

  // The skips, and those that loops stand for if nobody counts.
  std::vector<Skip> paths() const;
};

// Rules become states; small rules that do not recurse are taken in where they
// are called, since masks of a state are kept only up to the end of its rule.
Network build_network(
    const Rules& rules,
    const std::string& who,
    Effort& effort
);

// Which states reach the end of their rule: by skips and by calls of rules
// that do, and by bytes too where `with_bytes`. Without them: without reading
// anything.
std::vector<bool> reach_end(
    const Network& network,
    bool with_bytes,
    Effort& effort
);

// The rank of each rule (see RuleEntry). Throws UsageError for a rule that
// calls itself before a byte.
std::vector<std::int32_t> rank_rules(
    const Network& network,
    const std::vector<bool>& empty,
    const std::string& who,
    Effort& effort
);

// For each loop, whether one repetition may read nothing.
std::vector<bool> empty_loops(
    const Network& network,
    const std::vector<bool>& empty
);

}  // namespace hearth::text::grammar
