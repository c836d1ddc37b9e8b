#include "hearth/ops/gate/gpu_product.h"

#include <optional>

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
    int WIDTH,
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
    const T* gate,
    const T* value,
    const T* dy,
    T* dgate,
    T* dvalue
) {
  using namespace gpu_body;
#include "hearth/ops/gate/gpu_product_gradient.inc"
}

KernelLaunch launch_of(int act, const mx::array& gate, std::size_t outputs) {
  KernelLaunch launch;
  launch.items = static_cast<long>(gate.size() / 8);
  launch.integers = {{"ACTIVATION", act}};
  launch.types = {{"T", gate.dtype()}};
  launch.shapes.assign(outputs, gate.shape());
  launch.dtypes.assign(outputs, gate.dtype());
  return launch;
}

}  // namespace

bool product_fits(Activation act, const Arrays& in, mx::StreamOrDevice s) {
  const auto &gate = in.front(), &value = in.back();
  const int eights = in.size() == 1 ? 16 : 8;
  return number_of(act) && is_kernel_type(gate.dtype()) &&
         value.dtype() == gate.dtype() && gate.size() > 0 &&
         gate.shape(-1) % eights == 0 && runs_gpu_kernels(s);
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
  auto launch = launch_of(number, in[0], 1);
  const int width = in.size() == 1 ? in[0].shape(-1) / 2 : 0;
  launch.integers.emplace_back("WIDTH", width);
  if (width > 0) {
    launch.items /= 2;
    launch.shapes[0].back() = width;
  }
  launch.on_cpu = [=, dtype = in[0].dtype()](const KernelOnCpu& k) {
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < k.items; ++item) {
        product_item<T>(
            item, number, width, k.in<T>(0), k.in<T>(1), k.out<T>(0)
        );
      }
    });
  };
  return run_gpu_kernel(
      kernel, {in.front(), in.back()}, std::move(launch), s
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
  auto launch = launch_of(number, in[0], 2);
  launch.on_cpu = [=, dtype = in[0].dtype()](const KernelOnCpu& k) {
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < k.items; ++item) {
        product_gradient_item<T>(
            item, number, k.in<T>(0), k.in<T>(1), k.in<T>(2), k.out<T>(0),
            k.out<T>(1)
        );
      }
    });
  };
  return run_gpu_kernel(kernel, in, std::move(launch), s);
}

}  // namespace hearth::ops
