#include "hearth/ops/gate/gpu_product.h"

#include <optional>
#include <span>

#include "hearth/ops/gpu_kernel/body_impl.h"
#include "hearth/ops/gpu_kernel/gpu_kernel.h"

namespace hearth::ops {
namespace gpu_body {
#include "hearth/ops/gate/gpu_curve.inc"
}

namespace {

std::optional<int> number_of(Activation act) {
  switch (act) {
    case Activation::silu:
      return 0;
    case Activation::gelu_tanh:
      return 1;
    case Activation::relu:
      return 2;
    default:
      return {};
  }
}

template <class T>
void product_item(
    long item,
    int ACTIVATION,
    long JOINT,
    const T* gate,
    const T* value,
    T* y
) {
  using namespace gpu_body;
#include "hearth/ops/gate/gpu_product.inc"
}

template <class T>
void product_gradient_item(
    long item,
    int ACTIVATION,
    long JOINT,
    const T* gate,
    const T* value,
    const T* dy,
    T* dgate,
    T* dvalue
) {
  using namespace gpu_body;
#include "hearth/ops/gate/gpu_product_gradient.inc"
}

// Gate and value apart, or one array that is both, whose rows are halved.
struct Inputs {
  mx::array gate, value;
  int joint;  // a half's elements; 0: apart

  explicit Inputs(std::span<const mx::array> in)
      : gate(in[0]),
        value(in[in.size() - 1]),
        joint(in.size() == 1 ? in[0].shape(-1) / 2 : 0) {}
  // Of the product.
  mx::Shape shape() const {
    auto out = gate.shape();
    if (joint > 0) out.back() = joint;
    return out;
  }
};

KernelLaunch launch_of(int act, const Inputs& in) {
  KernelLaunch launch;
  launch.items = static_cast<long>(in.gate.size() / (in.joint > 0 ? 16 : 8));
  launch.integers = {{"ACTIVATION", act}, {"JOINT", in.joint}};
  launch.types = {{"T", in.gate.dtype()}};
  return launch;
}

}  // namespace

bool product_fits(
    Activation act,
    const Arrays& gate_and_value,
    mx::StreamOrDevice s
) {
  const Inputs in(gate_and_value);
  return number_of(act) && is_kernel_type(in.gate.dtype()) &&
         in.value.dtype() == in.gate.dtype() && in.gate.size() > 0 &&
         in.shape().back() % 8 == 0 && runs_gpu_kernels(s);
}

mx::array product_gpu(Activation act, const Arrays& in, mx::StreamOrDevice s) {
  static const GpuKernel kernel{
      "gate_product",
      "gate/gpu_product.inc",
      {"gate", "value"},
      {"y"},
      "gate/gpu_curve.inc"
  };
  const int number = *number_of(act);
  const Inputs from(in);
  auto launch = launch_of(number, from);
  launch.shapes = {from.shape()};
  launch.dtypes = {from.gate.dtype()};
  launch.on_cpu = [number, joint = from.joint,
                   dtype = from.gate.dtype()](const KernelOnCpu& k) {
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < k.items; ++item) {
        product_item<T>(
            item, number, joint, k.in<T>(0), k.in<T>(1), k.out<T>(0)
        );
      }
    });
  };
  return run_gpu_kernel(
      kernel, {from.gate, from.value}, std::move(launch), s
  )[0];
}

Arrays product_gradient_gpu(
    Activation act,
    const Arrays& in,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{
      "gate_product_gradient",
      "gate/gpu_product_gradient.inc",
      {"gate", "value", "dy"},
      {"dgate", "dvalue"},
      "gate/gpu_curve.inc"
  };
  const int number = *number_of(act);
  const Inputs from(std::span<const mx::array>(in).first(in.size() - 1));
  auto launch = launch_of(number, from);
  const auto shape = from.gate.shape();
  const mx::Shape none{8};
  launch.shapes = {shape, from.joint > 0 ? none : shape};
  launch.dtypes.assign(2, from.gate.dtype());
  launch.on_cpu = [number, joint = from.joint,
                   dtype = from.gate.dtype()](const KernelOnCpu& k) {
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < k.items; ++item) {
        product_gradient_item<T>(
            item, number, joint, k.in<T>(0), k.in<T>(1), k.in<T>(2),
            k.out<T>(0), k.out<T>(1)
        );
      }
    });
  };
  auto out = run_gpu_kernel(
      kernel, {from.gate, from.value, in.back()}, std::move(launch), s
  );
  if (from.joint > 0) out.pop_back();
  return out;
}

}  // namespace hearth::ops
