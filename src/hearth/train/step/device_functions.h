#pragma once
// The two functions of arrays that a device step is made of. They hold the
// order in which arrays go in and out, and nothing of what runs them.
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "hearth/train/step/step.h"

namespace hearth::train {

using Arrays = std::vector<mx::array>;
using ArraysFunction = std::function<Arrays(const Arrays&)>;

// Takes arrays one after the other out of a function's inputs.
class Reader {
 public:
  explicit Reader(std::span<const mx::array> all) : all_(all) {}
  const mx::array& one() { return all_[at_++]; }
  Arrays some(std::size_t n) {
    const auto part = all_.subspan(at_, n);
    at_ += n;
    return {part.begin(), part.end()};
  }
  Arrays rest() { return some(all_.size() - at_); }

 private:
  std::span<const mx::array> all_;
  std::size_t at_ = 0;
};

inline void append(Arrays& to, Arrays from) {
  to.insert(
      to.end(), std::make_move_iterator(from.begin()),
      std::make_move_iterator(from.end())
  );
}

// Gradients of one micro-batch with respect to the weights as products read
// them: matrices in the compute type, vectors in float32, in the groups that
// are one array to a product.
class GradientFunction {
 public:
  GradientFunction(const StepParts& parts, mx::Dtype compute);

  // What a pass has learnt: gradients for each group of trainable weights,
  // multiplied by the loss scale, and the sums of loss and weight.
  struct Sums {
    mx::array loss, weight;  // float32
    Arrays gradients;
  };

  // Adds to `sums` where given and takes its memory; several micro-batches are
  // summed in float32, one alone keeps its gradients in the type they are in.
  Sums operator()(
      const Arrays& weights,
      const MicroBatch& batch,
      const mx::array& loss_scale,
      std::optional<Sums> sums,
      bool alone
  );

 private:
  // What the compiled function depends on besides shapes.
  struct Form {
    bool segments = false, noise = false, adds = false, widens = false;
    std::size_t extra = 0;  // arrays of the objective's own
    auto operator<=>(const Form&) const = default;
  };

  StepParts parts_;
  mx::Dtype compute_;
  std::vector<nn::WeightGroup> groups_;
  std::vector<nn::Gate*> gates_;  // whose alpha follows the step
  std::map<Form, ArraysFunction> compiled_;

  ArraysFunction make(const Form& form) const;
};

// The trainable weights as a device step reads them.
std::vector<nn::WeightGroup> step_groups(models::Decoder& model);

// Compiled where graphs are for a GPU; as it is on a CPU, where compiling would
// call a C++ compiler while the program runs.
ArraysFunction compiled_on_gpu(ArraysFunction f);

}  // namespace hearth::train
