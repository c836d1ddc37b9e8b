// From rules to a network of states: which rules are copied, which are called.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/network_builder_impl.h"

namespace hearth::text::grammar {
namespace {

// A rule of at most this many states is copied to where it is called.
constexpr std::size_t kInlineStates = 48;
constexpr std::size_t kMaxEdges = std::size_t{1} << 21;
constexpr std::size_t kLongestName = 200;
constexpr std::uint64_t kUnitsPerState = 8;

// The rules an expression calls, in the order they stand in.
std::vector<int> calls_of(const Expr& body, Effort& effort) {
  std::vector<int> calls;
  std::vector<const Expr*> work{&body};
  while (!work.empty()) {
    const Expr& e = *work.back();
    work.pop_back();
    effort.spend();
    if (e.kind == Expr::Kind::rule) calls.push_back(e.rule);
    for (std::size_t i = e.parts.size(); i-- > 0;) {
      if (e.parts[i]->calls) work.push_back(e.parts[i].get());
    }
  }
  return calls;
}

}  // namespace

NetworkBuilder::NetworkBuilder(
    const Rules& rules,
    const std::string& who,
    Effort& effort
)
    : rules_(rules),
      who_(who),
      effort_(effort),
      order_(rules.rules.size(), -1),
      sizes_(rules.rules.size(), kHugeSize),
      entry_of_(rules.rules.size(), -1) {}

Network NetworkBuilder::build() {
  order_rules();
  network_.root = entry_of(rules_.root);
  while (!waiting_.empty()) {
    const Waiting next = waiting_.back();
    waiting_.pop_back();
    make_body(next);
  }
  return std::move(network_);
}

void NetworkBuilder::make_body(const Waiting& body) {
  const auto& made = network_.rules[static_cast<std::size_t>(body.entry)];
  name_ = made.name;
  own_ = body.body;
  later(*body.body, made.start, made.end, body.order);
  drain(0);
}

void NetworkBuilder::drain(std::size_t down_to) {
  while (tasks_.size() > down_to) {
    const Task task = tasks_.back();
    tasks_.pop_back();
    effort_.spend();
    compile(task);
  }
}

// Callees before callers where there is no recursion; a rule may be copied
// only into later ones, which is why copying ends.
void NetworkBuilder::order_rules() {
  struct Frame {
    int rule;
    std::vector<int> calls;
    std::size_t next = 0;
  };
  std::vector<bool> seen(rules_.rules.size());
  std::vector<Frame> stack;
  const auto enter = [&](int rule) {
    const auto at = static_cast<std::size_t>(rule);
    seen[at] = true;
    stack.push_back({rule, calls_of(*rules_.rules[at].body, effort_)});
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
    const int rule = top.rule;
    order_[static_cast<std::size_t>(rule)] = order++;
    measure_rule(rule);
    stack.pop_back();
  }
}

// Its body and the bodies that are copied into it. One more than its body, so
// that a chain of rules that only name each other is not copied as a whole.
void NetworkBuilder::measure_rule(int rule) {
  const auto at = static_cast<std::size_t>(rule);
  const Expr& body = *rules_.rules[at].body;
  std::size_t size = body.size + 1;
  if (size <= kInlineStates) {
    for (const int callee : calls_of(body, effort_)) {
      if (copied(callee, order_[at])) {
        size += sizes_[static_cast<std::size_t>(callee)];
      }
    }
  }
  sizes_[at] = std::min(size, kHugeSize);
}

bool NetworkBuilder::copied(int rule, int order) const {
  const auto at = static_cast<std::size_t>(rule);
  return order_[at] >= 0 && order_[at] < order && sizes_[at] <= kInlineStates;
}

void NetworkBuilder::check(
    std::size_t have,
    std::size_t most,
    std::string_view what
) const {
  if (have < most) return;
  throw UsageError(
      fmt::format(
          "{} the grammar must have at most {} {}, and passes that in {}", who_,
          most, what, name_
      ),
      "shorten counted repetitions, or leave their upper bound open"
  );
}

StateId NetworkBuilder::state() {
  effort_.spend(kUnitsPerState);
  check(
      static_cast<std::size_t>(network_.states), Automaton::kMaxStates, "states"
  );
  return network_.states++;
}

std::int32_t NetworkBuilder::new_entry(std::string name) {
  const auto id = static_cast<std::int32_t>(network_.rules.size());
  const StateId start = state(), end = state();
  if (name.size() > kLongestName) name.resize(kLongestName);
  network_.rules.push_back({std::move(name), start, end});
  return id;
}

std::int32_t NetworkBuilder::new_entry(
    std::string name,
    const Expr* body,
    int order
) {
  const std::int32_t id = new_entry(std::move(name));
  waiting_.push_back({id, body, order});
  return id;
}

std::int32_t NetworkBuilder::entry_of(int rule) {
  const auto at = static_cast<std::size_t>(rule);
  if (entry_of_[at] < 0) {
    const Rule& made = rules_.rules[at];
    entry_of_[at] = new_entry(made.name, made.body.get(), order_[at]);
  }
  return entry_of_[at];
}

void NetworkBuilder::add_byte(StateId from, ByteRange range, StateId to) {
  effort_.spend();
  check(network_.bytes.size(), kMaxEdges, "steps");
  network_.bytes.push_back({from, {range.first, range.last, to}});
}

void NetworkBuilder::add_call(StateId from, std::int32_t entry, StateId to) {
  check(network_.calls.size(), kMaxEdges, "calls");
  network_.calls.push_back({from, {entry, to}});
}

void NetworkBuilder::add_skip(StateId from, StateId to) {
  if (from == to) return;
  check(network_.skips.size(), kMaxEdges, "choices");
  network_.skips.push_back({from, to});
}

void NetworkBuilder::compile(const Task& task) {
  switch (task.e->kind) {
    case Expr::Kind::bytes:
      return compile_bytes(task.e->bytes, task.from, task.to);
    case Expr::Kind::chars:
      return compile_chars(task);
    case Expr::Kind::sequence:
      return compile_sequence(task);
    case Expr::Kind::choice:
      return compile_choice(task);
    case Expr::Kind::repeat:
      return compile_repeat(task);
    case Expr::Kind::rule:
      return compile_call(task);
  }
}

void NetworkBuilder::compile_call(const Task& task) {
  const int rule = task.e->rule;
  const auto at = static_cast<std::size_t>(rule);
  if (copied(rule, task.order)) {
    later(*rules_.rules[at].body, task.from, task.to, order_[at]);
  } else {
    add_call(task.from, entry_of(rule), task.to);
  }
}

void NetworkBuilder::compile_sequence(const Task& task) {
  const auto& parts = task.e->parts;
  if (task.begin >= parts.size()) return add_skip(task.from, task.to);
  StateId from = task.from;
  for (std::size_t i = task.begin; i < parts.size(); ++i) {
    const StateId next = i + 1 == parts.size() ? task.to : state();
    later(*parts[i], from, next, task.order);
    from = next;
  }
}

Network build_network(
    const Rules& rules,
    const std::string& who,
    Effort& effort
) {
  return NetworkBuilder(rules, who, effort).build();
}

}  // namespace hearth::text::grammar
