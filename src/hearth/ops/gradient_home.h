#pragma once
// Where a weight's gradient is summed up over the micro-batches of a step: one
// float32 array that the ops with a share in it add to themselves, so that no
// second one is ever held. What an op does not add, settle() does.
#include <memory>

#include "hearth/base/memory.h"
#include "hearth/ops/op.h"

namespace hearth::ops {

class GradientHome {
 public:
  // Throws OutOfMemory.
  GradientHome(const mx::Shape& shape, MemoryZone zone);
  // Over a float32 leaf that is there.
  explicit GradientHome(mx::array sum) : sum_(std::move(sum)) {}

  // The sum of the shares since clear(); no numbers before the first one.
  const mx::array& sum() const noexcept { return sum_; }
  // The next share is the first one. Also after a graph that was broken off:
  // it may have left half of its shares.
  void clear() noexcept;

  // For an op that is being evaluated: its output becomes the sum itself.
  // Returns whether shares are there to be added to; where not, the op must
  // write every element.
  bool enter(mx::array& output);
  bool holds(const mx::array& a) const;
  // For settle(): one that entered has arrived as a gradient.
  void arrived() noexcept { ++arrived_; }
  // Whether all that entered have arrived. If not, MLX has added two of them
  // up, because a weight was used twice without share().
  bool settled() const noexcept { return entered_ == arrived_; }

 private:
  mx::array sum_;
  bool begun_ = false;
  long entered_ = 0, arrived_ = 0;
};

using Home = std::shared_ptr<GradientHome>;

// A weight's gradient as its home has it: those of `gradients` that are not
// there yet are added.
mx::array settle(
    const Arrays& gradients,
    const Home& home,
    mx::StreamOrDevice s = {}
);

// w for n uses whose gradients meet in the home.
Arrays share(
    const mx::array& w,
    int n,
    const Home& home,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
