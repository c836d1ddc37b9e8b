#pragma once
// The forms of norms between which op.cpp chooses. It has checked what they are
// given.
#include "hearth/ops/norm/op.h"

namespace hearth::ops {

enum class NormKind { rms, layer };

// Which of the optional inputs are there, in the order they come in.
struct NormConfig {
  NormKind kind;
  float eps;
  bool has_r, has_w, has_b, h_used;
  bool keep = false;  // what the result can be made again from, if it can
  bool operator==(const NormConfig&) const = default;
};

// x, or x and r, and what is learned.
struct NormInputs {
  Arrays stream;
  std::optional<mx::array> w, b;
};

// [h, ]norm(h), the latter of dtype y. A form that keeps something, as asked,
// adds n and what else its gradient reads.
Arrays norm_cpu(
    const NormConfig& c,
    const NormInputs& in,
    mx::Dtype y,
    mx::StreamOrDevice s
);
Arrays norm_gpu(
    const NormConfig& c,
    const NormInputs& in,
    mx::Dtype y,
    mx::StreamOrDevice s
);
Arrays norm_reference(
    const NormConfig& c,
    const NormInputs& in,
    mx::Dtype y,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
