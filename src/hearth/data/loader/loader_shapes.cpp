#include "hearth/data/loader/loader_shapes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::data {

ShapeSchedule::ShapeSchedule(
    std::vector<Shape> shapes,
    std::uint64_t guarantee,
    RandomKey key
)
    : shapes_(std::move(shapes)), key_(key) {
  double sum = 0, rarest = 1;
  for (const auto& s : shapes_) {
    if (s.length == 0 || !(s.probability > 0)) {
      throw UsageError(
          fmt::format(
              "[data.loader] a shape needs a length and a probability above 0, "
              "got {} at {}",
              s.length, s.probability
          )
      );
    }
    sum += s.probability;
    rarest = std::min(rarest, s.probability);
  }
  if (!(std::abs(sum - 1) < 1e-6)) {
    throw UsageError(
        fmt::format(
            "[data.loader] the shapes' probabilities must add up to 1, got {}",
            sum
        )
    );
  }
  guaranteed_ = guarantee > 0;
  // Any 2b - 1 steps in a row hold a whole block of b.
  block_ = guaranteed_
               ? guarantee
               : static_cast<std::uint64_t>(std::ceil(1 / rarest - 1e-9));
  if (guaranteed_ && guarantee < 2 * shapes_.size() - 1) {
    throw UsageError(
        fmt::format(
            "[data.loader] {} shapes need a guarantee of at least {} steps, "
            "got {}",
            shapes_.size(), 2 * shapes_.size() - 1, guarantee
        )
    );
  }
  share_block();
}

// A shape too rare to come once a block gets one step of it; the others give
// it up in proportion to what they have.
void ShapeSchedule::share_block() {
  shares_.clear();
  for (const auto& s : shapes_) {
    shares_.push_back(s.probability * static_cast<double>(block_));
  }
  for (bool changed = true; changed;) {
    changed = false;
    double raised = 0, rest = 0;
    for (auto& share : shares_) {
      changed = changed || share < 1;
      share = std::max(share, 1.0);
      (share > 1 ? rest : raised) += share;
    }
    if (!changed || rest == 0) break;
    const double scale = (static_cast<double>(block_) - raised) / rest;
    for (auto& share : shares_) share *= share > 1 ? scale : 1;
  }
}

std::uint32_t ShapeSchedule::longest() const {
  std::uint32_t most = 0;
  for (const auto& s : shapes_) most = std::max(most, s.length);
  return most;
}

void ShapeSchedule::draw(std::uint64_t block) const {
  RandomStream random(key_.fold(block));
  // Systematic sampling: counts are within one of their share, and their share
  // on average.
  const double start = random.uniform();
  std::vector<std::uint64_t> counts;
  double cumulative = 0, before = std::floor(start);
  for (const double share : shares_) {
    cumulative += share;
    const bool last = counts.size() + 1 == shapes_.size();
    const double until =
        last ? static_cast<double>(block_) : std::floor(cumulative + start);
    counts.push_back(static_cast<std::uint64_t>(std::max(0.0, until - before)));
    before = std::max(before, until);
  }
  // Rounding can leave a share of just one without its step.
  for (auto& count : counts) {
    if (count > 0) continue;
    --*std::max_element(counts.begin(), counts.end());
    count = 1;
  }
  lengths_.clear();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    lengths_.insert(lengths_.end(), counts[i], shapes_[i].length);
  }
  for (std::size_t i = lengths_.size(); i > 1; --i) {
    std::swap(lengths_[i - 1], lengths_[random.below(i)]);
  }
  held_ = block;
}

// The one to take now, when the k-th due of all has no more than k steps left.
std::optional<std::size_t> ShapeSchedule::urgent() const {
  std::vector<std::size_t> order(shapes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return walk_.due[i]; });
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (walk_.due[order[k]] <= walk_.step + k) return order[0];
  }
  return {};
}

// Drawn among those that have come less often than their share.
std::size_t ShapeSchedule::behind() const {
  std::vector<double> owed;
  double sum = 0;
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const double share = shares_[i] / static_cast<double>(block_);
    const double lack = share * static_cast<double>(walk_.step + 1) -
                        static_cast<double>(walk_.counts[i]);
    owed.push_back(std::max(0.0, lack));
    sum += owed.back();
  }
  double at = RandomStream(key_.fold(walk_.step)).uniform() * sum;
  for (std::size_t i = 0; i < owed.size(); ++i) {
    if (at < owed[i]) return i;
    at -= owed[i];
  }
  return static_cast<std::size_t>(
      std::ranges::max_element(owed) - owed.begin()
  );
}

void ShapeSchedule::walk_to(std::uint64_t step) const {
  if (walk_.counts.empty() || step + 1 < walk_.step) {
    walk_ = {};
    walk_.counts.assign(shapes_.size(), 0);
    walk_.due.assign(shapes_.size(), block_ - 1);
  }
  while (walk_.step <= step) {
    const auto first = urgent();
    const std::size_t next = first ? *first : behind();
    walk_.counts[next] += 1;
    walk_.due[next] = walk_.step + block_;
    walk_.last = next;
    walk_.step += 1;
  }
}

std::uint32_t ShapeSchedule::length_at(std::uint64_t step) const {
  if (shapes_.size() == 1) return shapes_[0].length;
  if (guaranteed_) {
    walk_to(step);
    return shapes_[walk_.last].length;
  }
  if (step / block_ != held_) draw(step / block_);
  return lengths_[step % block_];
}

}  // namespace hearth::data
