// Documents longer than the longest row, counted before the first batch.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/units.h"
#include "hearth/data/loader/loader.h"

namespace hearth::data {
namespace {

void count(
    const DocumentSet& set,
    std::uint64_t first,
    std::uint64_t longest,
    Overlong policy,
    OverlongReport& report
) {
  const std::uint64_t unit = set.pairs() ? 2 : 1;
  bool over = false;
  std::uint64_t inputs = 0, beyond = 0;
  for (std::uint64_t d = first; d < first + unit; ++d) {
    const std::uint64_t own = std::max<std::uint64_t>(set.length(d), 1) - 1;
    inputs += own;
    beyond += own > longest ? own - longest : 0;
    over = over || own > longest;
  }
  report.documents += unit;
  report.tokens += inputs;
  if (!over) return;
  const bool split = policy == Overlong::kSplit ||
                     (policy == Overlong::kAuto && set.all_trained(first));
  if (policy == Overlong::kDrop) {
    report.dropped += unit;
    report.lost_tokens += inputs;
  } else if (split && unit == 1) {
    report.split += 1;
  } else {
    report.cut += 1;
    report.lost_tokens += beyond;
  }
}

}  // namespace

OverlongReport find_overlong(
    const TokenCache& cache,
    const LoaderConfig& config
) {
  OverlongReport report;
  // A stream goes on in the next row.
  if (config.arrange == Arrange::kStream) return report;
  std::uint64_t longest = 0;
  for (const auto& s : config.shapes) {
    longest = std::max<std::uint64_t>(longest, s.length);
  }
  for (const auto& set : cache.sets(config.split)) {
    const std::uint64_t unit = set.pairs() ? 2 : 1;
    for (std::uint64_t d = 0; d + unit <= set.documents(); d += unit) {
      count(set, d, longest, config.overlong, report);
    }
  }
  return report;
}

std::string OverlongReport::text(std::uint32_t longest) const {
  const std::uint64_t over = split + cut + dropped;
  if (over == 0) return {};
  std::string out = fmt::format(
      "{} of {} documents are longer than a row of {} tokens:", over, documents,
      longest
  );
  if (split > 0) out += fmt::format(" {} split over rows", split);
  if (cut > 0) out += fmt::format("{} {} cut", split > 0 ? "," : "", cut);
  if (dropped > 0) out += fmt::format(" {} left out", dropped);
  if (lost_tokens > 0) {
    out += fmt::format(
        "; {} tokens ({:.1f} %) are never trained on",
        format_count(static_cast<double>(lost_tokens)),
        100.0 * static_cast<double>(lost_tokens) / static_cast<double>(tokens)
    );
  }
  return out;
}

}  // namespace hearth::data
