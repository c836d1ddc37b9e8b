#include "hearth/ops/rope/gpu_rotate.h"

#include "hearth/ops/gpu_kernel/gpu_kernel.h"
#include "hearth/ops/rope/gpu_rotation_impl.h"

namespace hearth::ops {
namespace {

struct RotateShape {
  int half, heads, length, positions;
  bool positions_by_row, back;
};

template <class T>
void rotate_item(
    long item,
    const RotateShape& shape,
    const T* x,
    const int* positions,
    const float* table,
    T* y
) {
  using namespace gpu_body;
  const int HALF = shape.half, HEADS = shape.heads;
  const bool POSITIONS_BY_ROW = shape.positions_by_row, BACK = shape.back;
  const long sizes[] = {0, shape.length, shape.positions};
#include "hearth/ops/rope/gpu_rotate.inc"
}

}  // namespace

bool rotate_fits(
    const mx::array& x,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
) {
  return pairs == RopePairs::halves && table.shape(1) == x.shape(3) &&
         table.shape(1) % 16 == 0 && is_kernel_type(x.dtype()) &&
         x.size() > 0 && runs_gpu_kernels(s);
}

mx::array rotate_gpu(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    bool back,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{
      "rotate",
      "rope/gpu_rotate.inc",
      {"x", "positions", "table"},
      {"y"},
      "rope/gpu_rotation.inc"
  };
  const RotateShape shape{
      x.shape(3) / 2,        x.shape(2), x.shape(1), table.shape(0),
      positions.ndim() == 2, back
  };
  KernelLaunch launch;
  launch.items = static_cast<long>(x.size() / 16);
  launch.sizes = {shape.length, shape.positions};
  launch.integers = {
      {"HALF", shape.half},
      {"HEADS", shape.heads},
      {"POSITIONS_BY_ROW", shape.positions_by_row ? 1 : 0},
      {"BACK", back ? 1 : 0}
  };
  launch.types = {{"T", x.dtype()}};
  launch.shapes = {x.shape()};
  launch.dtypes = {x.dtype()};
  launch.on_cpu = [=, dtype = x.dtype()](const KernelOnCpu& k) {
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < k.items; ++item) {
        rotate_item<T>(
            item, shape, k.in<T>(0), k.in<int>(1), k.in<float>(2), k.out<T>(0)
        );
      }
    });
  };
  return run_gpu_kernel(kernel, {x, positions, table}, std::move(launch), s)[0];
}

}  // namespace hearth::ops
