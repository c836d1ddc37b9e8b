#pragma once
// Expressions become states and edges. Whatever is still to do waits in a list,
// so that neither deep expressions nor long chains of rules take stack.
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "hearth/text/grammar/network_impl.h"
#include "hearth/text/grammar/utf8_ranges.h"

namespace hearth::text::grammar {

class NetworkBuilder {
 public:
  NetworkBuilder(const Rules& rules, const std::string& who, Effort& effort);
  Network build();

 private:
  // The parts of `e` from `begin` on are to lead from one state to another.
  struct Task {
    const Expr* e;
    std::size_t begin;
    StateId from, to;
    int order;  // of the rule it stands in
  };
  // A rule's body that is to be made.
  struct Waiting {
    std::int32_t entry;
    const Expr* body;
    int order;
  };
  // A part that is written once and called where it stands again.
  using Shared = std::tuple<const Expr*, int, int>;

  // network.cpp
  void order_rules();
  void measure_rule(int rule);
  bool copied(int rule, int order) const;
  void make_body(const Waiting& body);
  void drain(std::size_t down_to);
  void compile(const Task& task);
  void compile_call(const Task& task);
  void compile_sequence(const Task& task);

  // network_repeats.cpp
  void compile_repeat(const Task& task);
  void compile_times(const Task& task, int times, bool open);
  void compile_loop(const Task& task);
  void call_shared(const Task& task);

  // network_texts.cpp
  void compile_choice(const Task& task);
  void compile_bytes(std::string_view bytes, StateId from, StateId to);
  void compile_chars(const Task& task);
  using ByteSteps = std::vector<ByteEdge>;
  ByteSteps steps_of(
      std::span<const Utf8Range> ranges,
      std::size_t depth,
      StateId to
  );
  StateId tail_of(const ByteSteps& steps);

  void later(const Expr& e, StateId from, StateId to, int order) {
    tasks_.push_back({&e, 0, from, to, order});
  }
  void check(std::size_t have, std::size_t most, std::string_view what) const;
  StateId state();
  std::int32_t new_entry(std::string name);
  std::int32_t new_entry(std::string name, const Expr* body, int order);
  std::int32_t entry_of(int rule);
  void add_byte(StateId from, ByteRange range, StateId to);
  void add_call(StateId from, std::int32_t entry, StateId to);
  void add_skip(StateId from, StateId to);

  const Rules& rules_;
  const std::string& who_;
  Effort& effort_;
  std::string name_;  // of the rule at work, for messages
  std::vector<int> order_;
  std::vector<std::size_t> sizes_;
  std::vector<std::int32_t> entry_of_;
  std::vector<Waiting> waiting_;
  std::vector<Task> tasks_;
  bool in_loop_ = false;
  const Expr* own_ = nullptr;  // a shared part whose body is at work
  std::map<Shared, std::int32_t> shared_;
  std::unordered_map<std::string, StateId> tails_;
  std::unordered_map<std::string, std::int32_t> classes_;
  Network network_;
};

}  // namespace hearth::text::grammar
