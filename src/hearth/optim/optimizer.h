#pragma once
// The optimiser of a model: a rule for each parameter. Master weights and
// state are float32 leaves updated in place, and packed companions are made
// anew in the same pass. It knows neither schedules nor files.
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hearth/nn/parameter.h"
#include "hearth/optim/optim_config.h"
#include "hearth/optim/update_rule.h"

namespace hearth::optim {

class Optimizer {
 public:
  // State for each of the parameters, which must be float32, evaluated and
  // outlive the optimiser. Throws UsageError or OutOfMemory.
  static std::unique_ptr<Optimizer> make(
      const OptimConfig& config,
      const std::vector<nn::Parameter*>& parameters
  );

  // One update. Gradients are evaluated, float32 or bfloat16, in the order of
  // the parameters; each is multiplied by gradient_scale (1/tokens, clipping,
  // loss scale) first. What does not fit is refused before anything changes.
  // When it throws later on (Muon needs memory), the weights are between two
  // steps and only restore() makes it usable again.
  void step(
      std::span<const mx::array> gradients,
      float gradient_scale,
      double lr
  );

  // Updates made so far.
  long steps() const { return steps_; }
  std::size_t state_bytes() const;
  // The weight decay of each parameter, in their order.
  std::vector<double> decays() const;

  // The number of steps and every rule's arrays, which are the leaves
  // themselves: copy or write them before the next step.
  std::vector<NamedArray> state() const;
  // Takes the numbers of such a state, one array after the other into its own:
  // beside the two no memory is taken. `copied` is told each one's index once
  // it is not read any more. Throws FormatError, having changed nothing, when
  // names, shapes or dtypes are not this optimiser's.
  void restore(
      std::span<const StoredArray> state,
      const std::function<void(std::size_t)>& copied = {}
  );
  // The same of evaluated row-major arrays.
  void restore(std::span<const NamedArray> state);

 private:
  struct Entry {
    nn::Parameter* parameter;
    double decay;
    std::unique_ptr<UpdateRule> rule;
  };

  std::vector<Entry> entries_;
  long steps_ = 0;
  bool torn_ = false;

  void check(std::span<const mx::array> gradients) const;
};

}  // namespace hearth::optim
