#include "hearth/ops/arithmetic/gpu_squares.h"

#include <algorithm>
#include <array>

#include "hearth/ops/gpu_kernel/body_impl.h"
#include "hearth/ops/gpu_kernel/gpu_kernel.h"

namespace hearth::ops {
namespace {

constexpr std::size_t kTogether = 8;
constexpr int kItems = 2048;        // enough to fill a GPU
constexpr std::size_t kFewest = 8;  // that a kernel takes (gpu_kernel.h)

template <class T>
void squares_item(
    long item,
    const long* sizes,
    const std::array<const T*, kTogether>& g,
    const float* before,
    float* after
) {
  using namespace gpu_body;
  const auto [g0, g1, g2, g3, g4, g5, g6, g7] = g;
#include "hearth/ops/arithmetic/gpu_squares.inc"
}

// What each item has found so far, and what it finds in `arrays` of one type.
mx::array add_squares(
    const mx::array& before,
    std::span<const mx::array> arrays,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{
      "add_squares",
      "arithmetic/gpu_squares.inc",
      {"g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "before"},
      {"after"}
  };
  const auto dtype = arrays[0].dtype();
  KernelLaunch launch;
  launch.items = before.shape(0);
  launch.lanes = 32;
  launch.types = {{"T", dtype}};
  launch.shapes = {before.shape()};
  launch.dtypes = {mx::float32};
  Arrays in(arrays.begin(), arrays.end());
  for (const auto& a : in) launch.sizes.push_back(static_cast<int>(a.size()));
  launch.sizes.resize(kTogether, 0);
  in.resize(kTogether, arrays[0]);
  in.push_back(before);
  launch.on_cpu = [=, counts = launch.sizes](const KernelOnCpu& k) {
    std::array<long, kTogether + 1> sizes{k.items};
    std::ranges::copy(counts, sizes.begin() + 1);
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      std::array<const T*, kTogether> g;
      for (std::size_t i = 0; i < kTogether; ++i) g[i] = k.in<T>(i);
      for (long item = 0; item < k.items; ++item) {
        squares_item<T>(
            item, sizes.data(), g, k.in<float>(kTogether), k.out<float>(0)
        );
      }
    });
  };
  return run_gpu_kernel(kernel, in, std::move(launch), s)[0];
}

}  // namespace

mx::array sum_squares_graph(const Arrays& arrays, mx::StreamOrDevice s) {
  const bool kernels = runs_gpu_kernels(s);
  auto sum = mx::array(0.0f);
  for (const auto& a : arrays) {
    if (kernels && a.size() >= kFewest) continue;
    const auto x = mx::astype(a, mx::float32, s);
    sum = mx::add(sum, mx::sum(mx::square(x, s), s), s);
  }
  if (!kernels) return sum;
  auto found = mx::zeros({kItems}, mx::float32, s);
  for (const auto dtype : {mx::float32, mx::bfloat16, mx::float16}) {
    Arrays same;
    for (const auto& a : arrays) {
      if (a.dtype() == dtype && a.size() >= kFewest) same.push_back(a);
    }
    for (std::size_t at = 0; at < same.size(); at += kTogether) {
      const auto count = std::min(kTogether, same.size() - at);
      found = add_squares(found, std::span(same).subspan(at, count), s);
    }
  }
  return mx::add(sum, mx::sum(found, s), s);
}

}  // namespace hearth::ops
