#pragma once
// The optimiser of a model: a rule for each parameter. On a CPU master weights
// and state are float32 leaves updated in place, and packed companions are made
// anew in the same pass; a device may take the update as a graph. It knows
// neither schedules nor files.
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hearth/nn/parameter_set.h"
#include "hearth/optim/optim_config.h"
#include "hearth/optim/update_rule.h"

namespace hearth::optim {

class Optimizer {
 public:
  // State for each of the parameters, which must be float32, evaluated and
  // outlive the optimiser. Throws UsageError or OutOfMemory.
  static std::unique_ptr<Optimizer> make(
      const OptimConfig& config,
      const std::vector<nn::Weight*>& parameters
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

  // The same update as a graph, which a device compiles once and runs each
  // step, giving up the memory of what goes in:
  //     after = compiled update(arrays(), gradients, scalars(lr).arrays())
  //     adopt(after); async_eval(after)
  // arrays() are all masters and states: each parameter's master and then its
  // rule's state, as state() has it. places() says where each master is.
  ops::Arrays arrays() const;
  std::vector<std::size_t> places() const;
  // What the next update is made with. A gradient scale that is worked out on
  // the device (clipping by the norm) takes its field's place in the graph.
  ops::StepScalars scalars(double lr, double gradient_scale = 1) const;
  // All of arrays() after an update. Nothing is evaluated and nothing changes;
  // the order of the gradients is the parameters'.
  ops::Arrays step_graph(
      const ops::Arrays& before,
      std::span<const mx::array> gradients,
      const ops::StepScalars& scalars,
      mx::StreamOrDevice s = {}
  ) const;
  // Takes what such an update gave and counts it. The arrays need not be
  // evaluated; those held before are let go, so that the device may write into
  // their memory. Throws UsageError where a parameter has a packed companion,
  // which only the update in place makes anew.
  void adopt(std::span<const mx::array> after);
  // An adopted update has turned out to be none: the device found it unfit and
  // left all arrays as they were.
  void uncount() { --steps_; }

  // Updates made so far.
  long steps() const { return steps_; }
  std::size_t state_bytes() const;
  // The weight decay of each parameter, in their order.
  std::vector<double> decays() const;

  // The number of steps and every rule's arrays, evaluated, which are the
  // state itself: copy or write them before the next step.
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
    nn::Weight* parameter;
    double decay;
    std::unique_ptr<UpdateRule> rule;
  };

  std::vector<Entry> entries_;
  ops::StepNumbers numbers_;  // what hangs on the configuration alone
  long steps_ = 0;
  bool torn_ = false;

  void check(std::span<const mx::array> gradients) const;
  void check_counts(std::size_t arrays, std::size_t gradients) const;
};

}  // namespace hearth::optim
