#include "hearth/ops/rope/gpu_heads.h"

#include "hearth/ops/gpu_kernel/gpu_kernel.h"
#include "hearth/ops/rope/gpu_rotation_impl.h"

namespace hearth::ops {
namespace {

struct HeadsShape {
  int half, heads, kv_heads, length, positions;
  bool positions_by_row;
};

template <class T>
void split_item(
    long item,
    const HeadsShape& shape,
    const T* joint,
    const int* positions,
    const float* table,
    T* q,
    T* k,
    T* v
) {
  using namespace gpu_body;
  const int HALF = shape.half, HEADS = shape.heads, KV = shape.kv_heads;
  const bool POSITIONS_BY_ROW = shape.positions_by_row;
  const long sizes[] = {0, shape.length, shape.positions};
#include "hearth/ops/rope/gpu_split_heads.inc"
}

template <class T>
void join_item(
    long item,
    const HeadsShape& shape,
    const T* dq,
    const T* dk,
    const T* dv,
    const int* positions,
    const float* table,
    T* joint
) {
  using namespace gpu_body;
  const int HALF = shape.half, HEADS = shape.heads, KV = shape.kv_heads;
  const bool POSITIONS_BY_ROW = shape.positions_by_row;
  const long sizes[] = {0, shape.length, shape.positions};
#include "hearth/ops/rope/gpu_join_heads.inc"
}

KernelLaunch launch_of(const HeadsShape& shape, int batch, mx::Dtype dtype) {
  KernelLaunch launch;
  const long rows = static_cast<long>(batch) * shape.length;
  launch.items = rows * (shape.heads + 2 * shape.kv_heads) * (shape.half / 8);
  launch.sizes = {shape.length, shape.positions};
  launch.integers = {
      {"HALF", shape.half},
      {"HEADS", shape.heads},
      {"KV", shape.kv_heads},
      {"POSITIONS_BY_ROW", shape.positions_by_row ? 1 : 0}
  };
  launch.types = {{"T", dtype}};
  return launch;
}

mx::Shape heads_of(const mx::array& like, int heads) {
  return {like.shape(0), like.shape(1), heads, like.shape(3)};
}

}  // namespace

Arrays split_heads_gpu(
    const mx::array& joint,
    JointHeads heads,
    const mx::array& positions,
    const mx::array& table,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{
      "split_heads",
      "rope/gpu_split_heads.inc",
      {"joint", "positions", "table"},
      {"q", "k", "v"},
      "rope/gpu_rotation.inc"
  };
  const HeadsShape shape{joint.shape(3) / 2, heads.heads,
                         heads.kv_heads,     joint.shape(1),
                         table.shape(0),     positions.ndim() == 2};
  const auto dtype = joint.dtype();
  auto launch = launch_of(shape, joint.shape(0), dtype);
  const auto kv = heads_of(joint, heads.kv_heads);
  launch.shapes = {heads_of(joint, heads.heads), kv, kv};
  launch.dtypes.assign(3, dtype);
  launch.on_cpu = [=](const KernelOnCpu& k) {
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < k.items; ++item) {
        split_item<T>(
            item, shape, k.in<T>(0), k.in<int>(1), k.in<float>(2), k.out<T>(0),
            k.out<T>(1), k.out<T>(2)
        );
      }
    });
  };
  return run_gpu_kernel(
      kernel, {joint, positions, table}, std::move(launch), s
  );
}

mx::array join_heads_gpu(
    const Arrays& gradients,
    const mx::array& positions,
    const mx::array& table,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{
      "join_heads",
      "rope/gpu_join_heads.inc",
      {"dq", "dk", "dv", "positions", "table"},
      {"joint"},
      "rope/gpu_rotation.inc"
  };
  const auto &dq = gradients[0], &dk = gradients[1];
  const HeadsShape shape{dq.shape(3) / 2, dq.shape(2),
                         dk.shape(2),     dq.shape(1),
                         table.shape(0),  positions.ndim() == 2};
  const auto dtype = dq.dtype();
  auto launch = launch_of(shape, dq.shape(0), dtype);
  launch.shapes = {heads_of(dq, shape.heads + 2 * shape.kv_heads)};
  launch.dtypes = {dtype};
  launch.on_cpu = [=](const KernelOnCpu& k) {
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < k.items; ++item) {
        join_item<T>(
            item, shape, k.in<T>(0), k.in<T>(1), k.in<T>(2), k.in<int>(3),
            k.in<float>(4), k.out<T>(0)
        );
      }
    });
  };
  return run_gpu_kernel(
      kernel, {dq, dk, gradients[2], positions, table}, std::move(launch), s
  )[0];
}

}  // namespace hearth::ops
