#pragma once
// Which row length each step has, when lengths are drawn from a set. Draws are
// stratified: a block of steps holds each length in proportion, and each at
// least once, so a rare length never stays away. Under a guarantee steps are
// drawn one after the other, and a length that would come too late comes first;
// the share of one that is rarer than that is raised, and the lengths that come
// more often give up the steps in proportion.
#include <cstdint>
#include <optional>
#include <vector>

#include "hearth/base/random.h"

namespace hearth::data {

struct Shape {
  std::uint32_t length = 0;
  double probability = 1;
};

class ShapeSchedule {
 public:
  // Every `guarantee` steps in a row hold every length; 0 takes the smallest
  // that leaves the probabilities as they are. Throws UsageError for
  // probabilities that do not add up to 1, or a guarantee too short to keep.
  ShapeSchedule(
      std::vector<Shape> shapes,
      std::uint64_t guarantee,
      RandomKey key
  );
  std::uint32_t length_at(std::uint64_t step) const;
  std::uint64_t guarantee() const {
    return guaranteed_ ? block_ : 2 * block_ - 1;
  }
  std::uint32_t longest() const;

 private:
  // The state of the schedule before a step.
  struct Walk {
    std::uint64_t step = 0;
    std::vector<std::uint64_t> counts, due;  // due: the last step to come at
    std::size_t last = 0;                    // of the step before
  };

  std::vector<Shape> shapes_;
  std::uint64_t block_ = 1;
  bool guaranteed_ = false;
  std::vector<double> shares_;  // of a block's steps, each at least 1
  RandomKey key_;
  // The block computed last.
  mutable std::uint64_t held_ = ~std::uint64_t{0};
  mutable std::vector<std::uint32_t> lengths_;
  mutable Walk walk_;

  void share_block();
  void draw(std::uint64_t block) const;
  void walk_to(std::uint64_t step) const;
  std::optional<std::size_t> urgent() const;
  std::size_t behind() const;
};

}  // namespace hearth::data
