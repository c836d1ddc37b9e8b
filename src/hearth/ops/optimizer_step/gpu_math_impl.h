#pragma once
// The arithmetic that the optimiser steps' graphs share.
#include "hearth/ops/op.h"

namespace hearth::ops {

// Arithmetic in float32 on one stream.
struct On {
  mx::StreamOrDevice s;
  mx::array times(const mx::array& a, const mx::array& b) const {
    return mx::multiply(a, b, s);
  }
  mx::array times(double a, const mx::array& b) const {
    return times(mx::array(static_cast<float>(a)), b);
  }
  mx::array plus(const mx::array& a, const mx::array& b) const {
    return mx::add(a, b, s);
  }
};

}  // namespace hearth::ops
