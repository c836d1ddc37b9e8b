// What must hold of a network: it ends, and no loop consumes nothing.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/network_impl.h"

namespace hearth::text::grammar {
namespace {

std::size_t at(std::int32_t id) {
  return static_cast<std::size_t>(id);
}

// For each key, the positions in a list of the edges that have it.
class Index {
 public:
  template <typename Edges, typename Key>
  Index(std::size_t keys, const Edges& edges, Key key) : begin_(keys + 1) {
    for (const auto& edge : edges) ++begin_[at(key(edge)) + 1];
    for (std::size_t i = 0; i < keys; ++i) begin_[i + 1] += begin_[i];
    places_.resize(edges.size());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      places_[next[at(key(edges[i]))]++] = static_cast<std::uint32_t>(i);
    }
  }
  std::span<const std::uint32_t> of(std::int32_t key) const {
    return std::span(places_).subspan(
        begin_[at(key)], begin_[at(key) + 1] - begin_[at(key)]
    );
  }

 private:
  std::vector<std::uint32_t> begin_, places_;
};

}  // namespace

std::vector<Network::Skip> Network::paths() const {
  std::vector<Skip> all = skips;
  for (const Loop& loop : loops) {
    all.push_back({loop.from, loop.first});
    all.push_back({loop.next, loop.first});
    all.push_back({loop.next, loop.to});
    if (loop.min == 0) all.push_back({loop.first, loop.to});
  }
  return all;
}

std::vector<bool> reach_end(
    const Network& network,
    bool with_bytes,
    Effort& effort
) {
  const std::size_t states = at(network.states);
  const std::vector<Network::Skip> paths = network.paths();
  effort.spend(states + paths.size() + network.bytes.size());
  const Index bytes(states, network.bytes, [](const auto& e) {
    return e.edge.to;
  });
  const Index skips(states, paths, [](const auto& e) { return e.to; });
  const Index backs(states, network.calls, [](const auto& e) {
    return e.edge.back;
  });
  const Index starts(states, network.calls, [&](const auto& e) {
    return network.rules[at(e.edge.rule)].start;
  });
  std::vector<bool> reaches(states);
  std::vector<StateId> work;
  const auto add = [&](StateId state) {
    if (reaches[at(state)]) return;
    reaches[at(state)] = true;
    work.push_back(state);
  };
  for (const auto& rule : network.rules) add(rule.end);
  while (!work.empty()) {
    const StateId state = work.back();
    work.pop_back();
    if (with_bytes) {
      for (const auto i : bytes.of(state)) add(network.bytes[i].from);
    }
    for (const auto i : skips.of(state)) add(paths[i].from);
    for (const auto i : backs.of(state)) {
      const auto& call = network.calls[i];
      if (reaches[at(network.rules[at(call.edge.rule)].start)]) add(call.from);
    }
    for (const auto i : starts.of(state)) {
      const auto& call = network.calls[i];
      if (reaches[at(call.edge.back)]) add(call.from);
    }
  }
  return reaches;
}

namespace {

// The rules each rule may call before it reads a byte.
std::vector<std::vector<std::int32_t>> first_calls(
    const Network& network,
    const std::vector<bool>& empty
) {
  const std::size_t states = at(network.states);
  const std::vector<Network::Skip> paths = network.paths();
  const Index skips(states, paths, [](const auto& e) { return e.from; });
  const Index calls(states, network.calls, [](const auto& e) {
    return e.from;
  });
  std::vector<std::vector<std::int32_t>> result(network.rules.size());
  std::vector<bool> seen(states);  // states belong to one rule each
  std::vector<StateId> work;
  for (std::size_t rule = 0; rule < network.rules.size(); ++rule) {
    const auto add = [&](StateId state) {
      if (seen[at(state)]) return;
      seen[at(state)] = true;
      work.push_back(state);
    };
    add(network.rules[rule].start);
    while (!work.empty()) {
      const StateId state = work.back();
      work.pop_back();
      for (const auto i : skips.of(state)) add(paths[i].to);
      for (const auto i : calls.of(state)) {
        const CallEdge& call = network.calls[i].edge;
        result[rule].push_back(call.rule);
        if (empty[at(network.rules[at(call.rule)].start)]) add(call.back);
      }
    }
  }
  return result;
}

}  // namespace

std::vector<std::int32_t> rank_rules(
    const Network& network,
    const std::vector<bool>& empty,
    const std::string& who,
    Effort& effort
) {
  effort.spend(at(network.states) + network.calls.size());
  const auto calls = first_calls(network, empty);
  enum : unsigned char { kNew, kOpen, kClosed };
  std::vector<unsigned char> mark(calls.size(), kNew);
  std::vector<std::int32_t> ranks(calls.size());
  auto rank = static_cast<std::int32_t>(calls.size());
  std::vector<std::pair<std::size_t, std::size_t>> stack;  // rule, next call
  for (std::size_t root = 0; root < calls.size(); ++root) {
    if (mark[root] != kNew) continue;
    mark[root] = kOpen;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [rule, next] = stack.back();
      if (next == calls[rule].size()) {
        mark[rule] = kClosed;
        ranks[rule] = --rank;
        stack.pop_back();
        continue;
      }
      const auto callee = at(calls[rule][next++]);
      if (mark[callee] == kOpen) {
        throw UsageError(
            fmt::format(
                "{} a rule must read something before it calls itself, {} is "
                "left-recursive",
                who, network.rules[callee].name
            )
        );
      }
      if (mark[callee] == kNew) {
        mark[callee] = kOpen;
        stack.emplace_back(callee, 0);
      }
    }
  }
  return ranks;
}

std::vector<bool> empty_loops(
    const Network& network,
    const std::vector<bool>& empty
) {
  std::vector<bool> result;
  if (network.loops.empty()) return result;
  const std::size_t states = at(network.states);
  const Index skips(states, network.skips, [](const auto& e) {
    return e.from;
  });
  const Index calls(states, network.calls, [](const auto& e) {
    return e.from;
  });
  std::vector<bool> seen(states);  // states belong to one loop at most
  std::vector<StateId> work;
  for (const Network::Loop& loop : network.loops) {
    const auto add = [&](StateId state) {
      if (seen[at(state)]) return;
      seen[at(state)] = true;
      work.push_back(state);
    };
    add(loop.first);
    while (!work.empty()) {
      const StateId state = work.back();
      work.pop_back();
      for (const auto i : skips.of(state)) add(network.skips[i].to);
      for (const auto i : calls.of(state)) {
        const CallEdge& call = network.calls[i].edge;
        if (empty[at(network.rules[at(call.rule)].start)]) add(call.back);
      }
    }
    result.push_back(seen[at(loop.next)]);
  }
  return result;
}

}  // namespace hearth::text::grammar
