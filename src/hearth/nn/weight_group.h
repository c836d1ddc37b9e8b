#pragma once
// Weights that multiply one input, as one matrix: their rows below each other,
// so that a GPU runs one product, and one for each gradient, in place of one a
// weight. The matrix is there while a training step is traced; the model's
// weights stay apart. A model that only generates holds them as one (joined.h).
#include <optional>
#include <vector>

#include "hearth/nn/linear.h"
#include "hearth/nn/norm.h"

namespace hearth::nn {

// One weight, or several whose rows are one array.
using WeightGroup = std::vector<Weight*>;

// What the layers' weights can be joined to: all of them, where each is
// trained, dense, alone (no bias, no adapter); else nothing.
WeightGroup trained_together(const std::vector<const Linear*>& layers);

// The weights in groups: those of `joined`, and every other alone. A group
// stands where its first weight does.
std::vector<WeightGroup> grouped(
    const std::vector<Weight*>& weights,
    const std::vector<WeightGroup>& joined
);
// The groups that are joined now.
std::vector<WeightGroup> grouped(const std::vector<Weight*>& weights);

// A group's rows as one array, and such an array's rows as each weight's own.
mx::array join_rows(const std::vector<mx::array>& parts);
std::vector<mx::array> split_rows(
    const WeightGroup& group,
    const mx::array& rows
);
// The array of each group, as a GroupSubstitution put it there.
std::vector<mx::array> values_of(const std::vector<WeightGroup>& groups);

// Puts an array into each group for as long as it lives, as Substitution does
// into each weight.
class GroupSubstitution {
 public:
  GroupSubstitution(
      const std::vector<WeightGroup>& groups,
      const std::vector<mx::array>& arrays
  );
  ~GroupSubstitution();
  GroupSubstitution(const GroupSubstitution&) = delete;
  GroupSubstitution& operator=(const GroupSubstitution&) = delete;

 private:
  struct Saved {
    Weight* weight;
    mx::array value;
    std::optional<Weight::Group> group;
  };
  std::vector<Saved> saved_;
};

// The products of all layers side by side in the last dimension, where their
// weights are one array now.
std::optional<mx::array> grouped_product(
    const Normed& x,
    const std::vector<const Linear*>& layers
);

}  // namespace hearth::nn
