// Texts and characters: alternatives that begin alike share their beginning,
// characters of several bytes that end alike share their end.
#include <algorithm>
#include <utility>

#include "hearth/text/grammar/network_builder_impl.h"

namespace hearth::text::grammar {
namespace {

// A class of more ranges is written once and called.
constexpr std::size_t kLargeClass = 32;

// The text that an alternative begins with, where it begins with one.
std::string_view beginning_of(const Expr& e) {
  if (e.kind == Expr::Kind::bytes) return e.bytes;
  const bool led = e.kind == Expr::Kind::sequence && !e.parts.empty() &&
                   e.parts.front()->kind == Expr::Kind::bytes;
  return led ? std::string_view(e.parts.front()->bytes) : std::string_view();
}

// Something follows the text it begins with.
bool goes_on(const Expr& e) {
  return e.kind == Expr::Kind::sequence && e.parts.size() > 1;
}

template <typename Number>
void append_number(Number number, std::string& out) {
  for (std::size_t i = 0; i < sizeof(number); ++i) {
    out += static_cast<char>(static_cast<std::uint32_t>(number) >> (8 * i));
  }
}

}  // namespace

void NetworkBuilder::compile_bytes(
    std::string_view bytes,
    StateId from,
    StateId to
) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    const StateId next = i + 1 == bytes.size() ? to : state();
    add_byte(from, {byte, byte}, next);
    from = next;
  }
}

void NetworkBuilder::compile_choice(const Task& task) {
  struct Led {
    std::string_view text;
    const Expr* e;
  };
  std::vector<Led> led;
  for (const ExprPtr& part : task.e->parts) {
    const std::string_view text = beginning_of(*part);
    effort_.spend();
    if (text.empty()) {
      later(*part, task.from, task.to, task.order);
    } else {
      led.push_back({text, part.get()});
    }
  }
  std::stable_sort(led.begin(), led.end(), [](const Led& a, const Led& b) {
    return a.text < b.text;
  });
  // Those from first to last have `depth` bytes in common, and stand at `at`.
  struct Group {
    std::size_t first, last, depth;
    StateId at;
  };
  std::vector<Group> groups{{0, led.size(), 0, task.from}};
  while (!groups.empty()) {
    auto [first, last, depth, at] = groups.back();
    groups.pop_back();
    effort_.spend();
    for (; first < last && led[first].text.size() == depth; ++first) {
      if (!goes_on(*led[first].e)) continue;
      tasks_.push_back({led[first].e, 1, at, task.to, task.order});
    }
    while (first < last) {
      const char byte = led[first].text[depth];
      const auto end = static_cast<std::size_t>(
          std::partition_point(
              led.begin() + static_cast<std::ptrdiff_t>(first),
              led.begin() + static_cast<std::ptrdiff_t>(last),
              [byte, depth = depth](const Led& one) {
                return static_cast<unsigned char>(one.text[depth]) <=
                       static_cast<unsigned char>(byte);
              }
          ) -
          led.begin()
      );
      bool ends = false, more = false;
      for (std::size_t i = first; i < end; ++i) {
        const bool whole = led[i].text.size() == depth + 1;
        (whole && !goes_on(*led[i].e) ? ends : more) = true;
      }
      const auto value = static_cast<std::uint8_t>(byte);
      if (ends) add_byte(at, {value, value}, task.to);
      if (more) {
        const StateId next = state();
        add_byte(at, {value, value}, next);
        groups.push_back({first, end, depth + 1, next});
      }
      first = end;
    }
  }
}

// Characters as steps of bytes. Two ranges of the same class never share a
// part of a first byte's range without sharing all of it, so there is at most
// one way to read a byte.
void NetworkBuilder::compile_chars(const Task& task) {
  const std::vector<CodeRange>& ranges = task.e->chars;
  effort_.spend(ranges.size());
  const auto steps_to = [&](StateId from, StateId to) {
    std::vector<Utf8Range> all;
    for (const CodeRange& range : ranges) append_utf8(range, all);
    effort_.spend(all.size());
    for (const ByteEdge& step : steps_of(all, 0, to)) {
      add_byte(from, {step.first, step.last}, step.to);
    }
  };
  if (ranges.size() <= kLargeClass) return steps_to(task.from, task.to);
  std::string key;
  key.reserve(ranges.size() * 2 * sizeof(char32_t));
  for (const CodeRange& range : ranges) {
    append_number(range.first, key);
    append_number(range.last, key);
  }
  const auto [found, added] = classes_.try_emplace(std::move(key), 0);
  if (added) {
    found->second = new_entry(name_);
    const auto& made = network_.rules[static_cast<std::size_t>(found->second)];
    steps_to(made.start, made.end);
  }
  add_call(task.from, found->second, task.to);
}

// The steps from the depth-th byte on, neighbours that lead to the same joined.
NetworkBuilder::ByteSteps NetworkBuilder::steps_of(
    std::span<const Utf8Range> ranges,
    std::size_t depth,
    StateId to
) {
  ByteSteps steps;
  for (std::size_t i = 0; i < ranges.size();) {
    const ByteRange byte = ranges[i].bytes.at(depth);
    std::size_t end = i + 1;
    while (end < ranges.size() && ranges[end].size == ranges[i].size &&
           ranges[end].bytes.at(depth).first == byte.first) {
      ++end;
    }
    const bool last = depth + 1 == static_cast<std::size_t>(ranges[i].size);
    const StateId next =
        last ? to
             : tail_of(steps_of(ranges.subspan(i, end - i), depth + 1, to));
    if (!steps.empty() && steps.back().to == next &&
        steps.back().last + 1 == byte.first) {
      steps.back().last = byte.last;
    } else {
      steps.push_back({byte.first, byte.last, next});
    }
    i = end;
  }
  return steps;
}

// The state that these steps leave.
StateId NetworkBuilder::tail_of(const ByteSteps& steps) {
  std::string key;
  for (const ByteEdge& step : steps) {
    key += static_cast<char>(step.first);
    key += static_cast<char>(step.last);
    append_number(step.to, key);
  }
  const auto [found, added] = tails_.try_emplace(std::move(key), 0);
  if (added) {
    found->second = state();
    for (const ByteEdge& step : steps) {
      add_byte(found->second, {step.first, step.last}, step.to);
    }
  }
  return found->second;
}

}  // namespace hearth::text::grammar
