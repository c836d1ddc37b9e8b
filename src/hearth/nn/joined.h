#pragma once
// Linear layers that read one input as one matrix whose rows follow each other,
// so that a decoding step on a GPU launches one product where there were two or
// three. It is held once: the layers' weights become views of it. Where they
// are trained their masters stay apart, and weight_group.h joins what a step
// reads.
#include "hearth/nn/linear.h"

namespace hearth::nn {

class Joined {
 public:
  // None where they are not all dense and of one type, or only some have a
  // bias. Evaluates, and holds what is joined twice meanwhile.
  static std::optional<Joined> of(const std::vector<const Linear*>& layers);

  // Whether the layers' weights are still views of it.
  bool current() const;
  // Whether it is what these layers compute in this pass: current, nothing is
  // trained and no adapter counts.
  bool counts(const Pass& pass) const;
  // What the first layer makes of x, then the second's, in the last dimension.
  mx::array operator()(const mx::array& x) const;

 private:
  Joined(std::vector<const Linear*> layers, mx::array rows);

  std::vector<const Linear*> layers_;
  std::vector<mx::array> views_;
  mx::array rows_;
  std::optional<mx::array> bias_;
};

}  // namespace hearth::nn
