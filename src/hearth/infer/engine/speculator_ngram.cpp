// Guesses of coming tokens by what followed the same tokens before.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/engine/speculator.h"

namespace hearth::infer {
namespace {

// The end of the latest earlier occurrence of the last n tokens; 0 for none.
std::size_t latest_match(std::span<const std::int32_t> tokens, std::size_t n) {
  const auto last = tokens.last(n);
  for (std::size_t end = tokens.size() - 1; end >= n; --end) {
    if (std::ranges::equal(tokens.subspan(end - n, n), last)) return end;
  }
  return 0;
}

}  // namespace

NgramSpeculator::NgramSpeculator(int longest) : longest_(longest) {
  if (longest < 1) {
    throw UsageError(
        fmt::format(
            "[infer.NgramSpeculator] tokens to look for must be 1 or more, "
            "got {}",
            longest
        )
    );
  }
}

void NgramSpeculator::guess(std::span<Ask> asks) {
  for (Ask& ask : asks) {
    const auto longest = static_cast<std::size_t>(longest_);
    const std::size_t least = std::min<std::size_t>(longest, 2);
    for (std::size_t n = longest; n >= least; --n) {
      if (ask.tokens.size() <= n) continue;
      const std::size_t end = latest_match(ask.tokens, n);
      if (end == 0) continue;
      const auto after = ask.tokens.subspan(end);
      const auto most = static_cast<std::size_t>(std::max(ask.most, 0));
      const auto taken = after.first(std::min(most, after.size()));
      ask.guesses.assign(taken.begin(), taken.end());
      break;
    }
  }
}

void NgramSpeculator::forget(std::uint64_t /*request*/) {}

}  // namespace hearth::infer
