#pragma once
// How one parameter is updated, and the state that this takes. A rule knows
// its own parameter's size and nothing of the others.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/ops/optimizer_step/gpu.h"
#include "hearth/optim/optim_config.h"

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

  // The arrays themselves, in an order that does not change.
  std::vector<NamedArray> state() const;
  // Takes arrays of the same shapes and dtypes as its state, in that order, and
  // lets go of those it had. They need not be evaluated.
  void adopt(std::span<const mx::array> state);

 protected:
  struct Slot {
    const char* name;
    mx::array* array;
  };
  // Where the state is held, in its order.
  virtual std::vector<Slot> slots() = 0;
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
  explicit RuleOf(const Numbers& hyper) : hyper_(hyper) {}
  // The numbers of a step in place.
  const Numbers& numbers(double lr, double decay) {
    hyper_.lr = static_cast<float>(lr);
    hyper_.decay = static_cast<float>(decay);
    return hyper_;
  }

  Numbers hyper_;
};

// The state of all rules is float32 leaves of the zone "optimizer state", zero
// at first, but for the 8-bit one's codes. Throw OutOfMemory.
std::unique_ptr<UpdateRule> make_adamw(const OptimConfig&, const mx::Shape&);
std::unique_ptr<UpdateRule> make_adamw8(const OptimConfig&, const mx::Shape&);
std::unique_ptr<UpdateRule> make_lion(const OptimConfig&, const mx::Shape&);
std::unique_ptr<UpdateRule> make_adafactor(
    const OptimConfig&,
    const mx::Shape&
);
// For a matrix.
std::unique_ptr<UpdateRule> make_muon(const OptimConfig&, const mx::Shape&);

MemoryZone state_zone();

}  // namespace hearth::optim
