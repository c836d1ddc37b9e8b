#include "hearth/ops/gate/op.h"

#include <array>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/base/spelling.h"
#include "hearth/ops/gate/faces_impl.h"

namespace hearth::ops {
namespace {

constexpr std::array<std::string_view, kernels::kActivations> kNames = {
    "silu", "gelu", "gelu_tanh", "relu", "sigmoid", "tanh", "mish"
};

void check(const char* where, const mx::array& a, const mx::array& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype() || a.ndim() == 0) {
    throw UsageError(
        fmt::format(
            "[{}] gate and value must have one dtype and one shape of at least "
            "one dimension, got [{}] and [{}]",
            where, fmt::join(a.shape(), ", "), fmt::join(b.shape(), ", ")
        )
    );
  }
}

mx::array choose(const GateConfig& c, const Arrays& in, mx::StreamOrDevice s) {
  switch (face_of(s, in[0].dtype())) {
    case Face::kernels:
      return gate_cpu(c, in, s);
    case Face::gpu:
      return gate_gpu(c, in, s);
    case Face::reference:
      break;
  }
  return gate_reference(c, in, s);
}

}  // namespace

Activation activation_named(std::string_view name) {
  if (name == "swish") return Activation::silu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") {
    return Activation::gelu_tanh;
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Activation>(i);
  }
  const std::vector<std::string> known(kNames.begin(), kNames.end());
  throw UsageError(
      fmt::format(
          "[ops.activation_named] the activation must be one of {}, got '{}'{}",
          fmt::join(known, ", "), name, did_you_mean(name, known)
      )
  );
}

std::string_view name_of(Activation a) {
  return kNames[static_cast<std::size_t>(a)];
}

mx::array activate(const mx::array& x, Activation act, mx::StreamOrDevice s) {
  if (x.ndim() == 0) {
    return mx::squeeze(activate(mx::expand_dims(x, 0, s), act, s), 0, s);
  }
  return choose({GateLayout::plain, {act}, false}, {x}, s);
}

mx::array gated_mlp_activation(
    const mx::array& gate,
    const mx::array& up,
    Activation act,
    mx::StreamOrDevice s
) {
  check("ops.gated_mlp_activation", gate, up);
  return choose({GateLayout::apart, {act}, false}, {gate, up}, s);
}

mx::array gated_mlp_activation(
    const mx::array& gate_up,
    Activation act,
    mx::StreamOrDevice s
) {
  if (gate_up.ndim() == 0 || gate_up.shape(-1) % 2 != 0) {
    throw UsageError(
        fmt::format(
            "[ops.gated_mlp_activation] the last dimension must be even, got "
            "shape [{}]",
            fmt::join(gate_up.shape(), ", ")
        )
    );
  }
  return choose({GateLayout::halves, {act}, false}, {gate_up}, s);
}

mx::array partial_gate(
    const mx::array& value,
    const mx::array& gate,
    const mx::array& alpha,
    PartialGate form,
    mx::StreamOrDevice s
) {
  constexpr const char* kWhere = "ops.partial_gate";
  check(kWhere, gate, value);
  if (alpha.size() != 1) {
    throw UsageError(
        fmt::format(
            "[{}] alpha must have one element, got {}", kWhere, alpha.size()
        )
    );
  }
  return choose(
      {GateLayout::apart, form, true},
      {gate, value, mx::astype(alpha, mx::float32, s)}, s
  );
}

}  // namespace hearth::ops
