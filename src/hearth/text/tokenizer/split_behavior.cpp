#include "hearth/text/tokenizer/split_behavior.h"

#include <vector>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::text {
namespace {

struct Part {
  std::size_t begin, end;
  bool match;
};

// Matches and what lies between them, in order.
template <class OnPart>
void parts_of(
    std::size_t size,
    FunctionRef<void(OnMatch)> find,
    bool invert,
    OnPart on
) {
  std::size_t previous = 0;
  const auto on_match = [&](std::size_t begin, std::size_t end) {
    if (previous != begin) on(Part{previous, begin, invert});
    on(Part{begin, end, !invert});
    previous = end;
  };
  find(on_match);
  if (previous != size) on(Part{previous, size, invert});
}

std::vector<Part> merge(const std::vector<Part>& parts, Behavior behavior) {
  std::vector<Part> out;
  bool previous = false;
  for (const Part& part : parts) {
    const bool joins = behavior == Behavior::kContiguous
                           ? part.match == previous
                           : part.match && !previous;
    if (joins && !out.empty()) {
      out.back().end = part.end;
    } else {
      out.push_back(part);
    }
    previous = part.match;
  }
  return out;
}

// A match belongs to what follows it, unless that is a match as well.
std::vector<Part> merge_with_next(const std::vector<Part>& parts) {
  std::vector<Part> out;
  bool previous = false;
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i].match && !previous && !out.empty()) {
      out.back().begin = parts[i].begin;
    } else {
      out.push_back(parts[i]);
    }
    previous = parts[i].match;
  }
  return {out.rbegin(), out.rend()};
}

}  // namespace

Behavior parse_behavior(std::string_view name) {
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  throw FormatError(fmt::format("split behavior \"{}\" is not known", name));
}

void split_by(
    std::string_view text,
    FunctionRef<void(OnMatch)> find,
    Behavior behavior,
    bool invert,
    FunctionRef<void(std::string_view part)> on_part
) {
  const auto emit = [&](const Part& part) {
    on_part(text.substr(part.begin, part.end - part.begin));
  };
  if (behavior == Behavior::kIsolated) {
    parts_of(text.size(), find, invert, emit);
  } else if (behavior == Behavior::kRemoved) {
    parts_of(text.size(), find, invert, [&](const Part& part) {
      if (!part.match) emit(part);
    });
  } else {
    std::vector<Part> parts;
    parts_of(text.size(), find, invert, [&](const Part& part) {
      parts.push_back(part);
    });
    parts = behavior == Behavior::kMergedWithNext ? merge_with_next(parts)
                                                  : merge(parts, behavior);
    for (const Part& part : parts) emit(part);
  }
}

}  // namespace hearth::text
