#pragma once
// The second function of a device step: from summed gradients to moved weights.
// The norm, clipping, whether the step is applied at all, every parameter's
// optimiser rule and the weights as products read them are one function, which
// takes the memory of what it replaces.
#include "hearth/train/step/device_functions.h"

namespace hearth::train {

class UpdateFunction {
 public:
  UpdateFunction(const StepParts& parts, const StepConfig& config);

  struct Order {
    double lr = 0, loss_scale = 1;
    StepLimits limits;
  };
  // What a step has come to: one read, once the device has got there.
  struct Numbers {
    double loss_sum = 0, weight_sum = 0, norm = 0;
    bool applied = false;
  };

  // Sends the update and returns a float32 array that numbers() reads. Throws
  // OutOfMemory; the weights are between two steps then.
  mx::array send(GradientFunction::Sums sums, const Order& order);
  static Numbers numbers(mx::array sent);

  // The groups of trainable weights as products read them: matrices in the
  // compute type.
  const Arrays& weights();
  // The masters were changed by somebody else.
  void forget();

 private:
  StepParts parts_;
  double clip_;
  mx::Dtype compute_;
  std::vector<nn::WeightGroup> groups_;
  std::vector<std::size_t> masters_;  // their places among the optimiser's
  Arrays weights_;                    // empty: not made yet
  ArraysFunction compiled_;

  Arrays run(const Arrays& inputs) const;
  mx::array as_read(
      const nn::WeightGroup& group,
      std::span<const mx::array> masters
  ) const;
};

}  // namespace hearth::train
