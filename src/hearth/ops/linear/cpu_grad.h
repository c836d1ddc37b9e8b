#pragma once
// The gradients of linear layers that read one input, in one op: that of the
// input is one product over all of them, and the input is packed once for the
// gradients of their weights.
#include <optional>
#include <vector>

#include "hearth/ops/gradient_home.h"
#include "hearth/ops/linear/cpu_operand.h"

namespace hearth::ops {

// What multiplied x besides the weight: scale * (x a^T) b^T, with
// inner = scale * x a^T as the forward pass left it.
struct AdapterUse {
  mx::array a, b, inner;
  Packed packed_a, packed_b;
  Home home_a, home_b;
  float scale = 1;
};

struct LinearUse {
  mx::array dy;
  std::optional<mx::array> w;  // none: packed is all there is of it
  Packed packed;
  Home home;  // of w's gradient; null: it has none
  std::optional<AdapterUse> adapter;
  struct Wanted {
    bool w = false, bias = false, a = false, b = false;
  } wanted;
};

struct LinearGradients {
  std::optional<mx::array> x;
  struct Of {
    std::optional<mx::array> w, bias, a, b;
  };
  std::vector<Of> parts;
};

// y = scale * x w^T (+ bias, + the adapter) for every part. x and every dy are
// row-contiguous and of one dtype.
LinearGradients linear_gradients(
    const mx::array& x,
    const std::vector<LinearUse>& parts,
    bool want_x,
    float scale,
    mx::Stream s
);

}  // namespace hearth::ops
