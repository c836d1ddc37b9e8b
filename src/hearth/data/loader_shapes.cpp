#include "hearth/data/loader_shapes.h"

#include <algorithm>
#include <cmath>

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
  if (guarantee == 0) {
    block_ = static_cast<std::uint64_t>(std::ceil(1 / rarest - 1e-9));
  } else {
    // Any 2b - 1 steps in a row hold a whole block of b.
    block_ = (guarantee + 1) / 2;
  }
  if (block_ < shapes_.size()) {
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

std::uint32_t ShapeSchedule::length_at(std::uint64_t step) const {
  if (shapes_.size() == 1) return shapes_[0].length;
  if (step / block_ != held_) draw(step / block_);
  return lengths_[step % block_];
}

}  // namespace hearth::data
