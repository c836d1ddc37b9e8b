#include "hearth/text/grammar/automaton.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/network_impl.h"

namespace hearth::text::grammar {
namespace {

// Lists of edges by the state they leave, one after the other.
template <typename Source, typename Edge, typename Take>
void arrange(
    const std::vector<Source>& from,
    std::size_t states,
    const Take& take,
    std::vector<Edge>& edges,
    std::vector<std::uint32_t>& begin
) {
  begin.assign(states + 1, 0);
  Edge edge;
  for (const Source& source : from) {
    if (take(source, edge)) ++begin[static_cast<std::size_t>(source.from) + 1];
  }
  for (std::size_t i = 0; i < states; ++i) begin[i + 1] += begin[i];
  edges.resize(begin.back());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (const Source& source : from) {
    if (take(source, edge)) {
      edges[next[static_cast<std::size_t>(source.from)]++] = edge;
    }
  }
}

// Each repetition that may be empty is another place where the text may stand
// at the same time.
constexpr std::int32_t kMostEmptyTimes = 256;

}  // namespace

Automaton::Automaton(
    const Rules& rules,
    const std::string& who,
    Effort& effort
) {
  Network network = build_network(rules, who, effort);
  const std::vector<bool> empty = reach_end(network, false, effort);
  const std::vector<std::int32_t> ranks =
      rank_rules(network, empty, who, effort);
  const std::vector<bool> alive = reach_end(network, true, effort);
  const std::vector<bool> empty_times = empty_loops(network, empty);
  const auto lives = [&](StateId state) {
    return alive[static_cast<std::size_t>(state)];
  };
  std::vector<Network::Skip> entered;
  std::int64_t number = network.states;
  for (std::size_t i = 0; i < network.loops.size(); ++i) {
    const Network::Loop& from = network.loops[i];
    if (!lives(from.first)) continue;
    if (empty_times[i] && from.max > kMostEmptyTimes) {
      throw UsageError(
          fmt::format(
              "{} what may be empty must be repeated at most {} times or "
              "without a bound, got {}",
              who, kMostEmptyTimes, from.max
          )
      );
    }
    Loop loop{.first = from.first, .size = from.next - from.first};
    loop.begin = static_cast<StateId>(number);
    loop.to = from.to;
    // Times that may be empty need not be there.
    loop.min = empty_times[i] ? 0 : from.min;
    loop.max = from.max;
    loop.may_be_empty = empty_times[i];
    number += std::int64_t{loop.size} * loop.max + 1;
    if (number > kMaxNumbers) {
      throw UsageError(
          fmt::format(
              "{} counted repetitions must take at most {} states", who,
              kMaxNumbers
          ),
          "shorten counted repetitions, or leave their upper bound open"
      );
    }
    loops_.push_back(loop);
    entered.push_back({from.from, loop.begin});
  }
  first_number_ = network.states;
  root_ = network.root;
  for (std::size_t i = 0; i < network.rules.size(); ++i) {
    const StateId start = network.rules[i].start;
    rules_.push_back({start, ranks[i], empty[static_cast<std::size_t>(start)]});
  }
  if (!lives(rule(root_).start)) {
    throw UsageError(
        fmt::format("{} the grammar must allow a finite text, got none", who)
    );
  }
  const auto states = static_cast<std::size_t>(network.states);
  ends_.assign(states, 0);
  for (const auto& entry : network.rules) {
    ends_[static_cast<std::size_t>(entry.end)] = 1;
  }
  arrange(
      network.bytes, states,
      [&](const Network::Bytes& source, ByteEdge& edge) {
        edge = source.edge;
        return lives(edge.to);
      },
      bytes_, byte_begin_
  );
  arrange(
      network.calls, states,
      [&](const Network::Call& source, CallEdge& edge) {
        edge = source.edge;
        return lives(edge.back) && lives(rule(edge.rule).start);
      },
      calls_, call_begin_
  );
  std::erase_if(network.skips, [&](const Network::Skip& skip) {
    return !lives(skip.to);
  });
  network.skips.insert(network.skips.end(), entered.begin(), entered.end());
  arrange(
      network.skips, states,
      [&](const Network::Skip& source, StateId& to) {
        to = source.to;
        return true;
      },
      skips_, skip_begin_
  );
  set_classes();
}

const Automaton::Loop& Automaton::loop_of(StateId number) const {
  const auto behind = std::upper_bound(
      loops_.begin(), loops_.end(), number,
      [](StateId at, const Loop& loop) { return at < loop.begin; }
  );
  return *std::prev(behind);
}

Automaton::Row Automaton::counted_row(StateId number) const {
  const Loop& loop = loop_of(number);
  const StateId time = (number - loop.begin) / loop.size;
  const StateId inner = (number - loop.begin) % loop.size;
  Row row;
  if (inner == 0 && time >= loop.min) row.out = loop.to;
  // Behind the last time nothing is left but the way out.
  if (time == loop.max) return row;
  row.at = loop.first + inner;
  row.shift = number - row.at;
  return row;
}

StateId Automaton::like(StateId state, std::size_t bytes) const {
  if (state < first_number_) return state;
  const Loop& loop = loop_of(state);
  if (loop.may_be_empty) return state;
  const StateId time = (state - loop.begin) / loop.size;
  const StateId inner = (state - loop.begin) % loop.size;
  // So many times may begin: the one that is under way may end at once.
  const auto reach = static_cast<std::int64_t>(bytes) + 1;
  const bool free = time >= loop.min && loop.max - time > reach;
  const bool bound = loop.min - time > reach;
  if (!free && !bound) return state;
  return loop.begin + (free ? loop.min : 0) * loop.size + inner;
}

const Automaton::Loop* Automaton::loop_with(StateId state) const {
  // Loops are made one after the other, so their states rise as well.
  const auto behind = std::upper_bound(
      loops_.begin(), loops_.end(), state,
      [](StateId at, const Loop& loop) { return at < loop.first; }
  );
  if (behind == loops_.begin()) return nullptr;
  const Loop& loop = *std::prev(behind);
  return state <= loop.first + loop.size ? &loop : nullptr;
}

StateId Automaton::uncounted(StateId state) const {
  if (state < first_number_) return state;
  const Loop& loop = loop_of(state);
  const StateId inner = (state - loop.begin) % loop.size;
  const bool again = inner == 0 && state != loop.begin;
  return loop.first + (again ? loop.size : inner);
}

StateId Automaton::way_out(StateId uncounted) const {
  const Loop* const loop = loop_with(uncounted);
  if (loop == nullptr) return -1;
  const bool at_once = uncounted == loop->first && loop->min == 0;
  return at_once || uncounted == loop->first + loop->size ? loop->to : -1;
}

void Automaton::set_classes() {
  // Neighbours between which no range begins or ends are alike.
  std::array<bool, 257> cut{};
  for (const ByteEdge& edge : bytes_) {
    cut[edge.first] = true;
    cut[edge.last + std::size_t{1}] = true;
  }
  std::size_t current = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && cut.at(byte)) ++current;
    classes_.at(byte) = static_cast<std::uint8_t>(current);
  }
  class_count_ = current + 1;
}

}  // namespace hearth::text::grammar
