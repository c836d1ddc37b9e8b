#include "hearth/infer/grammar/automaton.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/grammar/network_impl.h"

namespace hearth::infer::grammar {
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

}  // namespace

Automaton::Automaton(const Rules& rules, const std::string& who) {
  const Network network = build_network(rules, who);
  const std::vector<bool> empty = reach_end(network, false);
  const std::vector<std::int32_t> ranks = rank_rules(network, empty, who);
  const std::vector<bool> alive = reach_end(network, true);
  const auto lives = [&](StateId state) {
    return alive[static_cast<std::size_t>(state)];
  };
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
  arrange(
      network.skips, states,
      [&](const Network::Skip& source, StateId& to) {
        to = source.to;
        return lives(to);
      },
      skips_, skip_begin_
  );
  set_classes();
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

}  // namespace hearth::infer::grammar
