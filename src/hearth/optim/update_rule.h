#pragma once
// How one parameter is updated, and the state that this takes. A rule knows
// its own parameter's state and nothing of the others. Which arrays it keeps is
// described in optimizer_kind.h.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hearth/ops/optimizer_step/gpu.h"

namespace hearth::optim {
namespace mx = mlx::core;

struct NamedArray {
  std::string name;
  mx::array array;
};

// One that somebody else holds, such as a mapped file; at any address.
struct StoredArray {
  std::string name;
  mx::Dtype dtype;
  mx::Shape shape;
  std::span<const std::byte> bytes;
};

// Leaves of the zone "optimizer state", zero at first. Their order does not
// change.
using RuleState = std::vector<NamedArray>;
// Throws OutOfMemory.
RuleState make_rule_state(const ops::StateArrays& described);

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // One step in place. step counts from 1; decay is the weight decay of this
  // parameter.
  virtual void step(
      const ops::Parameter& p,
      long step,
      double lr,
      double decay
  ) = 0;
  // The same step as a graph, for a device that compiles those of all
  // parameters into one function: the weight and then state()'s arrays, before
  // the step in and after it out. Nothing is evaluated and nothing changes.
  virtual ops::Arrays step_graph(
      const ops::GraphStep& step,
      double decay
  ) const = 0;

  // The arrays themselves.
  const RuleState& state() const { return state_; }
  // Takes arrays of the same shapes and dtypes as its state, in that order, and
  // lets go of those it had. They need not be evaluated.
  void adopt(std::span<const mx::array> state);

 protected:
  explicit UpdateRule(RuleState state) : state_(std::move(state)) {}
  mx::array& array(std::size_t i) { return state_.at(i).array; }

 private:
  RuleState state_;
};

// A rule that is a struct of numbers and a function of ops for a device, to
// which the weight decay alone comes from outside.
template <class Numbers, auto kGraph>
class RuleOf : public UpdateRule {
 public:
  ops::Arrays step_graph(
      const ops::GraphStep& step,
      double decay
  ) const override {
    Numbers own = hyper_;
    own.decay = static_cast<float>(decay);
    return kGraph(own, step);
  }

 protected:
  RuleOf(const Numbers& hyper, RuleState state)
      : UpdateRule(std::move(state)), hyper_(hyper) {}
  // The numbers of a step in place.
  const Numbers& numbers(double lr, double decay) {
    hyper_.lr = static_cast<float>(lr);
    hyper_.decay = static_cast<float>(decay);
    return hyper_;
  }

  Numbers hyper_;
};

// weight = keep * weight + factor * update in place on a CPU, and the
// parameter's own refresh while its rows are warm: the end of a rule whose
// update is an array.
void apply_update(
    const ops::Parameter& p,
    const mx::array& update,
    float keep,
    float factor
);

MemoryZone state_zone();

}  // namespace hearth::optim
