#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/grammar/network_impl.h"
#include "hearth/infer/grammar/utf8_ranges.h"

namespace hearth::infer::grammar {
namespace {

// A rule of at most this many states is copied to where it is called.
constexpr std::size_t kInlineStates = 48;
// A part repeated more often than this, and larger than that, becomes a rule.
constexpr int kManyTimes = 4;
constexpr std::size_t kLargePart = 4;
constexpr std::size_t kMaxEdges = std::size_t{1} << 22;
constexpr std::size_t kHuge = std::size_t{1} << 30;

bool one_byte_class(const Expr& e) {
  return (e.kind == Expr::Kind::chars && e.chars.back().last < 0x80) ||
         (e.kind == Expr::Kind::bytes && e.bytes.size() == 1);
}

void collect_calls(const Expr& e, std::vector<int>& out) {
  if (e.kind == Expr::Kind::rule) out.push_back(e.rule);
  for (const ExprPtr& part : e.parts) collect_calls(*part, out);
}

class Builder {
 public:
  Builder(const Rules& rules, const std::string& who)
      : rules_(rules),
        who_(who),
        order_(rules.rules.size(), -1),
        sizes_(rules.rules.size(), 1),
        entry_of_(rules.rules.size(), -1) {}

  Network build() {
    order_rules();
    network_.root = entry_of(rules_.root);
    while (!waiting_.empty()) {
      const auto [entry, body, order] = waiting_.back();
      waiting_.pop_back();
      const Network::Entry made =
          network_.rules[static_cast<std::size_t>(entry)];
      name_ = made.name;
      current_order_ = order;
      compile(*body, made.start, made.end);
    }
    return std::move(network_);
  }

 private:
  struct Waiting {
    std::int32_t entry;
    ExprPtr body;
    int order;
  };

  // Callees before callers where there is no recursion; a rule may be copied
  // only into later ones, which is why copying ends.
  void order_rules() {
    struct Frame {
      int rule;
      std::vector<int> calls;
      std::size_t next = 0;
    };
    std::vector<bool> seen(rules_.rules.size());
    std::vector<Frame> stack;
    const auto enter = [&](int rule) {
      seen[static_cast<std::size_t>(rule)] = true;
      Frame frame{rule, {}};
      collect_calls(
          *rules_.rules[static_cast<std::size_t>(rule)].body, frame.calls
      );
      stack.push_back(std::move(frame));
    };
    int order = 0;
    enter(rules_.root);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.calls.size()) {
        const int callee = top.calls[top.next++];
        if (!seen[static_cast<std::size_t>(callee)]) enter(callee);
        continue;
      }
      const auto at = static_cast<std::size_t>(top.rule);
      order_[at] = order++;
      current_order_ = order_[at];
      sizes_[at] = size_of(*rules_.rules[at].body);
      stack.pop_back();
    }
  }

  bool copied(int rule) const {
    const auto at = static_cast<std::size_t>(rule);
    return order_[at] >= 0 && order_[at] < current_order_ &&
           sizes_[at] <= kInlineStates;
  }

  // About how many states it makes.
  std::size_t size_of(const Expr& e) const {
    std::size_t sum = 0;
    switch (e.kind) {
      case Expr::Kind::bytes:
        return e.bytes.size();
      case Expr::Kind::chars:
        return one_byte_class(e) ? 1 : 6 + e.chars.size();
      case Expr::Kind::rule:
        return copied(e.rule) ? sizes_[static_cast<std::size_t>(e.rule)] : 1;
      case Expr::Kind::repeat: {
        const std::size_t part = size_of(*e.parts.front());
        const auto times =
            static_cast<std::size_t>(std::max({e.min + 1, e.max, 1}));
        return std::min(kHuge, part * times + 1);
      }
      case Expr::Kind::sequence:
      case Expr::Kind::choice:
        for (const ExprPtr& part : e.parts) {
          sum = std::min(kHuge, sum + std::max<std::size_t>(1, size_of(*part)));
        }
    }
    return sum;
  }

  void check(std::size_t have, std::size_t most, std::string_view what) const {
    if (have < most) return;
    throw UsageError(
        fmt::format(
            "{} the grammar must have at most {} {}, and passes that in {}",
            who_, most, what, name_
        ),
        "shorten counted repetitions, or leave their upper bound open"
    );
  }

  StateId state() {
    check(
        static_cast<std::size_t>(network_.states), Automaton::kMaxStates,
        "states"
    );
    return network_.states++;
  }

  std::int32_t new_entry(std::string name, ExprPtr body, int order) {
    const auto id = static_cast<std::int32_t>(network_.rules.size());
    const StateId start = state(), end = state();
    network_.rules.push_back({std::move(name), start, end});
    waiting_.push_back({id, std::move(body), order});
    return id;
  }

  std::int32_t entry_of(int rule) {
    const auto at = static_cast<std::size_t>(rule);
    if (entry_of_[at] < 0) {
      const Rule& made = rules_.rules[at];
      entry_of_[at] = new_entry(made.name, made.body, order_[at]);
    }
    return entry_of_[at];
  }

  void add_byte(StateId from, ByteRange range, StateId to) {
    check(network_.bytes.size(), kMaxEdges, "steps");
    network_.bytes.push_back({from, {range.first, range.last, to}});
  }
  void add_call(StateId from, std::int32_t entry, StateId to) {
    check(network_.calls.size(), kMaxEdges, "calls");
    network_.calls.push_back({from, {entry, to}});
  }
  void add_skip(StateId from, StateId to) {
    if (from == to) return;
    check(network_.skips.size(), kMaxEdges, "choices");
    network_.skips.push_back({from, to});
  }

  void compile(const Expr& e, StateId from, StateId to) {
    switch (e.kind) {
      case Expr::Kind::bytes:
        return compile_bytes(e.bytes, from, to);
      case Expr::Kind::chars:
        return compile_chars(e.chars, from, to);
      case Expr::Kind::sequence:
        return compile_sequence(e.parts, from, to);
      case Expr::Kind::choice:
        for (const ExprPtr& part : e.parts) compile(*part, from, to);
        return;
      case Expr::Kind::repeat:
        return compile_repeat(e, from, to);
      case Expr::Kind::rule:
        if (copied(e.rule)) {
          const int order = std::exchange(
              current_order_, order_[static_cast<std::size_t>(e.rule)]
          );
          compile(
              *rules_.rules[static_cast<std::size_t>(e.rule)].body, from, to
          );
          current_order_ = order;
        } else {
          add_call(from, entry_of(e.rule), to);
        }
        return;
    }
  }

  void compile_bytes(const std::string& bytes, StateId from, StateId to) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(bytes[i]);
      const StateId next = i + 1 == bytes.size() ? to : state();
      add_byte(from, {byte, byte}, next);
      from = next;
    }
  }

  // Characters of several bytes that end alike share the states of their ends.
  void compile_chars(
      const std::vector<CodeRange>& ranges,
      StateId from,
      StateId to
  ) {
    std::vector<Utf8Range> all;
    for (const CodeRange& range : ranges) append_utf8(range, all);
    // (first, last, to) of the remaining bytes, back to front, to their state.
    std::map<std::string, StateId> tails;
    for (const Utf8Range& range : all) {
      StateId next = to;
      std::string tail;
      for (int i = range.size - 1; i > 0; --i) {
        const ByteRange byte = range.bytes.at(static_cast<std::size_t>(i));
        tail.push_back(static_cast<char>(byte.first));
        tail.push_back(static_cast<char>(byte.last));
        const auto [found, added] = tails.try_emplace(tail, 0);
        if (added) {
          found->second = state();
          add_byte(found->second, byte, next);
        }
        next = found->second;
      }
      add_byte(from, range.bytes[0], next);
    }
  }

  void compile_sequence(
      const std::vector<ExprPtr>& parts,
      StateId from,
      StateId to
  ) {
    if (parts.empty()) return add_skip(from, to);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const StateId next = i + 1 == parts.size() ? to : state();
      compile(*parts[i], from, next);
      from = next;
    }
  }

  void compile_repeat(const Expr& e, StateId from, StateId to) {
    ExprPtr part = e.parts.front();
    if (std::max(e.min, e.max) > kManyTimes && size_of(*part) > kLargePart) {
      part = hoisted(*part);
    }
    const auto one = [&](StateId a, StateId b) { compile_part(*part, a, b); };
    for (int i = 0; i < e.min; ++i) {
      const StateId next = state();
      one(from, next);
      from = next;
    }
    if (e.max == kNoLimit) {
      const StateId loop = state();
      add_skip(from, loop);
      one(loop, loop);
      return add_skip(loop, to);
    }
    for (int i = e.min; i < e.max; ++i) {
      add_skip(from, to);
      const StateId next = state();
      one(from, next);
      from = next;
    }
    add_skip(from, to);
  }

  // A call of an entry made here is written as a rule below -1.
  void compile_part(const Expr& e, StateId from, StateId to) {
    if (e.kind == Expr::Kind::rule && e.rule < -1) {
      add_call(from, -2 - e.rule, to);
    } else if (e.kind == Expr::Kind::choice) {
      for (const ExprPtr& part : e.parts) compile_part(*part, from, to);
    } else {
      compile(e, from, to);
    }
  }

  // The same with all but its single bytes moved into a rule of their own.
  ExprPtr hoisted(const Expr& e) {
    std::vector<ExprPtr> kept, moved;
    const auto sort = [&](const Expr& part) {
      if (part.kind == Expr::Kind::chars) {
        std::vector<CodeRange> low, high;
        for (const CodeRange& range : part.chars) {
          low.push_back({range.first, std::min<char32_t>(range.last, 0x7F)});
          high.push_back({std::max<char32_t>(range.first, 0x80), range.last});
        }
        low = normal_ranges(std::move(low));
        high = normal_ranges(std::move(high));
        if (!low.empty()) kept.push_back(chars(std::move(low)));
        if (!high.empty()) moved.push_back(chars(std::move(high)));
      } else if (one_byte_class(part)) {
        kept.push_back(std::make_shared<Expr>(part));
      } else {
        moved.push_back(std::make_shared<Expr>(part));
      }
    };
    if (e.kind == Expr::Kind::choice) {
      for (const ExprPtr& part : e.parts) sort(*part);
    } else {
      sort(e);
    }
    if (!moved.empty()) {
      auto called = std::make_shared<Expr>();
      called->kind = Expr::Kind::rule;
      called->rule =
          -2 - new_entry(name_, choice(std::move(moved)), current_order_);
      kept.push_back(std::move(called));
    }
    return choice(std::move(kept));
  }

  const Rules& rules_;
  const std::string& who_;
  std::string name_;
  std::vector<int> order_;
  std::vector<std::size_t> sizes_;
  std::vector<std::int32_t> entry_of_;
  std::vector<Waiting> waiting_;
  int current_order_ = 0;
  Network network_;
};

}  // namespace

Network build_network(const Rules& rules, const std::string& who) {
  return Builder(rules, who).build();
}

}  // namespace hearth::infer::grammar
