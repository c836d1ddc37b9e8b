#include "hearth/infer/engine/reading_order.h"

#include <algorithm>

namespace hearth::infer {
namespace {

// More are not remembered: who comes after them counts as new.
constexpr std::size_t kMostAskers = 4096;

// Of so many turns one is for the prompt that came first.
constexpr std::uint64_t kTurnsOfTheFirst = 4;

}  // namespace

Asker asker_of(const Request& request) {
  return {request.scope.high, request.scope.low, request.asker};
}

Turns::Had Turns::of(const Asker& asker) const {
  const auto found = had_.find(asker);
  return found == had_.end() ? Had{} : found->second;
}

void Turns::take(const Asker& asker) {
  if (had_.size() >= kMostAskers && !had_.contains(asker)) had_.clear();
  Had& had = had_[asker];
  had.last = ++turn_;
  ++had.count;
}

std::vector<std::size_t> reading_order(
    std::span<const UnreadPrompt> prompts,
    const Turns& turns
) {
  std::map<Asker, std::vector<std::size_t>> of_each;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    of_each[prompts[i].asker].push_back(i);
  }
  struct Line {
    std::uint64_t last;
    std::size_t first;  // which of its prompts came before the others
    std::vector<std::size_t> prompts;
  };
  std::vector<Line> lines;
  for (auto& [asker, places] : of_each) {
    const Turns::Had had = turns.of(asker);
    const std::size_t first = places.front();
    // A prompt's place counts where two are equally long.
    std::ranges::stable_sort(places, {}, [&](std::size_t i) {
      return prompts[i].unread;
    });
    if (had.count % kTurnsOfTheFirst == kTurnsOfTheFirst - 1) {
      const auto at = std::ranges::find(places, first);
      std::rotate(places.begin(), at, at + 1);
    }
    lines.push_back({had.last, first, std::move(places)});
  }
  std::ranges::sort(lines, {}, [](const Line& line) {
    return std::pair(line.last, line.first);
  });
  std::vector<std::size_t> out;
  for (const Line& line : lines) {
    out.insert(out.end(), line.prompts.begin(), line.prompts.end());
  }
  return out;
}

}  // namespace hearth::infer
