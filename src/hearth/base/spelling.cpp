#include "hearth/base/spelling.h"

#include <algorithm>
#include <vector>

namespace hearth {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      const bool swapped =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest(
    std::string_view word,
    std::span<const std::string> known
) {
  // No command or key is this long, and the time to compare two words grows
  // with the square of their length.
  constexpr std::size_t kLongest = 256;
  if (word.size() > kLongest) return std::nullopt;
  // A third of the letters may differ, but always one.
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::optional<std::string> best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > 2 * kLongest) continue;
    const std::size_t d = edit_distance(word, candidate);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(
    std::string_view word,
    std::span<const std::string> known
) {
  const auto hit = nearest(word, known);
  return hit ? "; did you mean '" + *hit + "'?" : "";
}

}  // namespace hearth
