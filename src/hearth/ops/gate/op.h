#pragma once
// Activations and gated products. Inputs are float32 or bfloat16, the result
// has their dtype.
#include <string_view>

#include "hearth/kernels/gate.h"
#include "hearth/ops/op.h"

namespace hearth::ops {

using kernels::Activation;

// silu (or swish), gelu, gelu_tanh (or gelu_new, gelu_pytorch_tanh), relu,
// sigmoid, tanh, mish. Throws UsageError that lists them.
Activation activation_named(std::string_view name);
std::string_view name_of(Activation a);

// act(x).
mx::array activate(
    const mx::array& x,
    Activation act,
    mx::StreamOrDevice s = {}
);

// act(gate) * up, of equal shapes.
mx::array gated_mlp_activation(
    const mx::array& gate,
    const mx::array& up,
    Activation act,
    mx::StreamOrDevice s = {}
);
// The same where one product gave both: gate is the first half of the last
// dimension, up the second.
mx::array gated_mlp_activation(
    const mx::array& gate_up,
    Activation act,
    mx::StreamOrDevice s = {}
);

// v (alpha act(gate) + 1 - alpha), with v = value, or tanh(value) as GTU has
// it. alpha is a float32 scalar array and gets a gradient.
struct PartialGate {
  Activation act = Activation::sigmoid;
  bool tanh_value = false;
  float beta = 1;  // silu is z sigmoid(beta z)
};
mx::array partial_gate(
    const mx::array& value,
    const mx::array& gate,
    const mx::array& alpha,
    PartialGate form,
    mx::StreamOrDevice s = {}
);

// The definitions, in MLX's own ops; any floating dtype.
mx::array activate_reference(
    const mx::array& x,
    Activation act,
    float beta = 1,
    mx::StreamOrDevice s = {}
);
mx::array partial_gate_reference(
    const mx::array& value,
    const mx::array& gate,
    const mx::array& alpha,
    PartialGate form,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
