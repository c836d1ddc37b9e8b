// The activations that a GPU's kernel of gates knows; the op cases have silu.
#include <gtest/gtest.h>

#include "hearth/ops/gate/op.h"
#include "hearth/ops/op_case.h"
#include "hearth/ops/op_case_check_impl.h"

namespace hearth::ops {
namespace {

TEST(GpuGate, EveryActivationOfTheKernel) {
  mx::set_default_device(mx::Device::cpu);
  const Arrays in{
      normal_input({9, 24}, mx::float32, 1, 2),
      normal_input({9, 24}, mx::float32, 2)
  };
  const Arrays ct{normal_input({9, 24}, mx::float32, 3)};
  for (const auto act :
       {Activation::silu, Activation::gelu_tanh, Activation::relu}) {
    const auto run = [&](Face face) {
      const ScopedFace forced(face);
      auto [values, gradients] = mx::vjp(
          [&](const Arrays& v) {
            return Arrays{gated_mlp_activation(v[0], v[1], act)};
          },
          in, ct
      );
      gradients.push_back(values[0]);
      return gradients;
    };
    const auto got = run(Face::gpu), want = run(Face::reference);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(first_difference(got[i], want[i], {1e-5, 1e-5}), "")
          << static_cast<int>(act) << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace hearth::ops
