#include "hearth/ops/embedding/gpu_rows.h"

#include "hearth/ops/gpu_kernel/body_impl.h"
#include "hearth/ops/gpu_kernel/gpu_kernel.h"

namespace hearth::ops {
namespace {

template <class S, class T>
void row_item(
    long item,
    int D,
    int rows,
    const int* ids,
    const S* table,
    T* y
) {
  using namespace gpu_body;
  const int sizes[] = {0, rows};
#include "hearth/ops/embedding/gpu_rows.inc"
}

}  // namespace

bool rows_fit(const mx::array& table, mx::Dtype dtype, mx::StreamOrDevice s) {
  return is_kernel_type(table.dtype()) && is_kernel_type(dtype) &&
         table.shape(1) % 8 == 0 && table.shape(0) > 0 && runs_gpu_kernels(s);
}

mx::array rows_gpu(
    const mx::array& ids,
    const mx::array& table,
    mx::Dtype dtype,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{
      "rows", "embedding/gpu_rows.inc", {"ids", "table"}, {"y"}
  };
  const int rows = table.shape(0), dim = table.shape(1);
  KernelLaunch launch;
  launch.items = static_cast<long>(ids.size()) * (dim / 8);
  launch.sizes = {rows};
  launch.integers = {{"D", dim}};
  launch.types = {{"S", table.dtype()}, {"T", dtype}};
  auto shape = ids.shape();
  shape.push_back(dim);
  launch.shapes = {shape};
  launch.dtypes = {dtype};
  launch.on_cpu = [=, from = table.dtype()](const KernelOnCpu& k) {
    with_kernel_type(from, [&](auto* st) {
      with_kernel_type(dtype, [&](auto* tt) {
        using S = std::remove_pointer_t<decltype(st)>;
        using T = std::remove_pointer_t<decltype(tt)>;
        for (long item = 0; item < k.items; ++item) {
          row_item<S, T>(
              item, dim, rows, k.in<int>(0), k.in<S>(1), k.out<T>(0)
          );
        }
      });
    });
  };
  return run_gpu_kernel(kernel, {ids, table}, std::move(launch), s)[0];
}

}  // namespace hearth::ops
