#include "hearth/data/loader/loader_order.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hearth::data {
namespace {

constexpr int kRounds = 6;

// How many items of each source one epoch holds.
std::vector<std::uint64_t> epoch_counts(
    const std::vector<OrderSource>& sources
) {
  // Passes over a source that one unit of weighted tokens makes.
  std::vector<double> rates;
  double fastest = 0;
  for (const auto& s : sources) {
    const bool usable = s.items > 0 && s.tokens > 0;
    rates.push_back(usable ? s.weight / static_cast<double>(s.tokens) : 0);
    fastest = std::max(fastest, rates.back());
  }
  std::vector<std::uint64_t> counts;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::uint64_t items = sources[i].items;
    if (fastest == 0 || items == 0) {
      counts.push_back(items);
      continue;
    }
    const double share = rates[i] / fastest * static_cast<double>(items);
    counts.push_back(
        std::clamp<std::uint64_t>(
            static_cast<std::uint64_t>(std::llround(share)), 1, items
        )
    );
  }
  return counts;
}

}  // namespace

Permutation::Permutation(std::uint64_t n, RandomKey key)
    : n_(n),
      half_bits_(n <= 1 ? 1 : (std::bit_width(n - 1) + 1) / 2),
      key_(key) {}

std::uint64_t Permutation::operator()(std::uint64_t i) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = i >> half_bits_, right = i & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const auto word = random_block(key_, round << 32 | right)[0];
      const std::uint64_t mixed = (left ^ word) & mask;
      left = right;
      right = mixed;
    }
    i = left << half_bits_ | right;
  } while (i >= n_);
  return i;
}

DocumentOrder::DocumentOrder(
    std::vector<OrderSource> sources,
    RandomKey key,
    bool shuffle
)
    : sources_(std::move(sources)), key_(key), shuffle_(shuffle) {
  for (const auto count : epoch_counts(sources_)) {
    starts_.push_back(starts_.back() + count);
  }
}

DocumentOrder::Item DocumentOrder::at(
    std::uint64_t epoch,
    std::uint64_t index
) const {
  if (shuffle_) index = Permutation(size(), key_.fold(epoch))(index);
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), index);
  const auto source = static_cast<std::size_t>(after - starts_.begin()) - 1;
  const std::uint64_t count = starts_[source + 1] - starts_[source];
  const std::uint64_t items = sources_[source].items;
  std::uint64_t item = index - starts_[source];
  if (count != items) {
    // Epochs take consecutive stretches of an endless run of permutations.
    const std::uint64_t place = epoch * count + item;
    item = place % items;
    if (shuffle_) {
      const RandomKey key = key_.fold("source").fold(source);
      item = Permutation(items, key.fold(place / items))(item);
    }
  }
  return {static_cast<std::uint32_t>(source), item};
}

}  // namespace hearth::data
