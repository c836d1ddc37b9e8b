#include "hearth/infer/engine/prefix_cache.h"

#include <algorithm>

namespace hearth::infer {
namespace {

// Enough for any number of conversations on one machine, few enough to be
// looked through for every request.
constexpr std::size_t kMostEntries = 256;

}  // namespace

int common_prefix(
    std::span<const std::int32_t> a,
    std::span<const std::int32_t> b
) {
  const auto n = std::min(a.size(), b.size());
  const auto end = a.begin() + static_cast<std::ptrdiff_t>(n);
  return static_cast<int>(
      std::mismatch(a.begin(), end, b.begin()).first - a.begin()
  );
}

PrefixCache::Match PrefixCache::find(
    std::span<const std::int32_t> tokens,
    const PrefixGroup& group
) {
  Entry* best = nullptr;
  int most = 0;
  for (Entry& e : entries_) {
    if (e.group != group) continue;
    const int n = common_prefix(e.tokens, tokens);
    if (n > most) best = &e, most = n;
  }
  if (best == nullptr) return {};
  best->used = ++clock_;
  return {best->sequence, most};
}

void PrefixCache::keep(
    SequenceId sequence,
    std::span<const std::int32_t> tokens,
    const PrefixGroup& group
) {
  const auto all = [&](const Entry& e) {
    return e.group == group ? common_prefix(e.tokens, tokens) : -1;
  };
  const auto holds_it = std::ranges::find_if(entries_, [&](const Entry& e) {
    return all(e) == static_cast<int>(tokens.size());
  });
  if (holds_it != entries_.end()) {
    holds_it->used = ++clock_;
    runner_.close(sequence);
    return;
  }
  std::erase_if(entries_, [&](const Entry& e) {
    const bool held = all(e) == static_cast<int>(e.tokens.size());
    if (held) runner_.close(e.sequence);
    return held;
  });
  if (entries_.size() >= kMostEntries) evict();
  entries_.push_back(
      {{tokens.begin(), tokens.end()}, group, sequence, ++clock_}
  );
}

bool PrefixCache::evict(SequenceId except) {
  auto oldest = entries_.end();
  for (auto e = entries_.begin(); e != entries_.end(); ++e) {
    if (e->sequence == except) continue;
    if (oldest == entries_.end() || e->used < oldest->used) oldest = e;
  }
  if (oldest == entries_.end()) return false;
  runner_.close(oldest->sequence);
  entries_.erase(oldest);
  return true;
}

void PrefixCache::clear() {
  while (evict()) {
  }
}

}  // namespace hearth::infer
