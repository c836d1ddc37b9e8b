#include "hearth/ops/norm/gpu_add_rms.h"

#include <algorithm>

#include <mlx/transforms.h>

#include "hearth/ops/gpu_kernel/body_impl.h"
#include "hearth/ops/gpu_kernel/gpu_kernel.h"

namespace hearth::ops {
namespace {

constexpr int kLanes = 32, kMostDim = 2048;
// Rows of partial sums of the weight's gradient: enough items to fill a GPU.
constexpr long kMostItems = 2048;

template <class S, class T>
void add_rms_item(
    long item,
    int D,
    float EPS,
    bool KEEP,
    const S* x,
    const T* r,
    const float* w,
    S* h,
    T* y,
    T* n,
    float* scales
) {
  using namespace gpu_body;
  constexpr int PACKS = kMostDim / 8;
#include "hearth/ops/norm/gpu_add_rms.inc"
}

template <class S, class T>
void add_rms_gradient_item(
    long item,
    const long* sizes,
    int D,
    bool H_USED,
    const T* n,
    const float* scales,
    const T* dy,
    const S* dh,
    const float* w,
    S* dx,
    T* dr,
    float* dw
) {
  using namespace gpu_body;
  constexpr int PACKS = kMostDim / 8;
#include "hearth/ops/norm/gpu_add_rms_gradient.inc"
}

template <class T>
void norm_again_item(long item, int D, const T* n, const float* w, T* y) {
  using namespace gpu_body;
#include "hearth/ops/norm/gpu_norm_again.inc"
}

// The stream is float32 or of the branch's type.
template <class F>
void with_types(mx::Dtype stream, mx::Dtype branch, F&& f) {
  with_kernel_type(branch, [&](auto* t) {
    if (stream == branch) return f(t, t);
    f(static_cast<float*>(nullptr), t);
  });
}

// Of rows that a warp shares.
KernelLaunch launch_of(const mx::array& rows) {
  const int dim = rows.shape(-1);
  KernelLaunch launch;
  launch.items = rows_of(rows);
  launch.lanes = kLanes;
  launch.integers = {
      {"D", dim}, {"PACKS", (dim + kLanes * 8 - 1) / (kLanes * 8)}
  };
  return launch;
}

// x, r, w -> h, y and, to be kept, n and its scales
Arrays forward(const Arrays& in, float eps, bool keep, mx::StreamOrDevice s) {
  static const GpuKernel kernel{
      "add_rms",
      "norm/gpu_add_rms.inc",
      {"x", "r", "w"},
      {"h", "y", "n", "scales"}
  };
  const auto stream = in[0].dtype(), branch = in[1].dtype();
  auto launch = launch_of(in[0]);
  launch.floats = {{"EPS", eps}};
  launch.integers.emplace_back("KEEP", keep ? 1 : 0);
  launch.types = {{"S", stream}, {"T", branch}};
  const mx::Shape none{8};
  launch.shapes = {
      in[0].shape(), in[0].shape(), keep ? in[0].shape() : none,
      keep ? mx::Shape{std::max(8, static_cast<int>(launch.items))} : none
  };
  launch.dtypes = {stream, branch, branch, mx::float32};
  launch.on_cpu = [=, dim = in[0].shape(-1)](const KernelOnCpu& k) {
    with_types(stream, branch, [&](auto* st, auto* tt) {
      using S = std::remove_pointer_t<decltype(st)>;
      using T = std::remove_pointer_t<decltype(tt)>;
      for (long item = 0; item < k.items; ++item) {
        add_rms_item<S, T>(
            item, dim, eps, keep, k.in<S>(0), k.in<T>(1), k.in<float>(2),
            k.out<S>(0), k.out<T>(1), k.out<T>(2), k.out<float>(3)
        );
      }
    });
  };
  return run_gpu_kernel(kernel, in, std::move(launch), s);
}

// n, scales, dy, dh (anything where h is not used), w -> dx, dr, dw
Arrays gradient(
    const Arrays& in,
    mx::Dtype stream,
    bool h_used,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{
      "add_rms_gradient",
      "norm/gpu_add_rms_gradient.inc",
      {"n", "scales", "dy", "dh", "w"},
      {"dx", "dr", "dw"}
  };
  const auto branch = in[0].dtype();
  auto launch = launch_of(in[0]);
  const long rows = launch.items;
  const int dim = in[0].shape(-1);
  launch.items = std::min(rows, kMostItems);
  launch.sizes = {static_cast<int>(rows)};
  launch.integers.emplace_back("H_USED", h_used ? 1 : 0);
  launch.types = {{"S", stream}, {"T", branch}};
  launch.shapes = {
      in[0].shape(), in[0].shape(), {static_cast<int>(launch.items), dim}
  };
  launch.dtypes = {stream, branch, mx::float32};
  launch.on_cpu = [=](const KernelOnCpu& k) {
    const long sizes[] = {k.items, rows};
    with_types(stream, branch, [&](auto* st, auto* tt) {
      using S = std::remove_pointer_t<decltype(st)>;
      using T = std::remove_pointer_t<decltype(tt)>;
      for (long item = 0; item < k.items; ++item) {
        add_rms_gradient_item<S, T>(
            item, sizes, dim, h_used, k.in<T>(0), k.in<float>(1), k.in<T>(2),
            k.in<S>(3), k.in<float>(4), k.out<S>(0), k.out<T>(1),
            k.out<float>(2)
        );
      }
    });
  };
  auto out = run_gpu_kernel(kernel, in, std::move(launch), s);
  out[2] = mx::sum(out[2], 0, false, s);
  return out;
}

}  // namespace

bool add_rms_fits(
    const NormConfig& c,
    const NormInputs& in,
    mx::Dtype y,
    mx::StreamOrDevice s
) {
  if (c.kind != NormKind::rms || !c.has_r || !c.has_w) return false;
  const auto& x = in.stream[0];
  const int dim = x.shape(-1);
  const bool types = is_kernel_type(y) && in.stream[1].dtype() == y &&
                     (x.dtype() == y || x.dtype() == mx::float32);
  return types && dim % 8 == 0 && dim <= kMostDim && x.size() > 0 &&
         runs_gpu_kernels(s);
}

Arrays add_rms_gpu(
    const NormConfig& c,
    const NormInputs& in,
    mx::StreamOrDevice s
) {
  const auto run = [c, s](const Arrays& p) {
    return forward(p, c.eps, c.keep, s);
  };
  const auto back = [c,
                     s](const Arrays& p, const Arrays& ct, const Arrays& out) {
    const auto kept = c.keep ? out : forward(p, c.eps, true, s);
    const auto& dh = c.h_used ? ct[0] : out[0];
    return gradient(
        {kept[2], kept[3], ct[1], dh, p[2]}, p[0].dtype(), c.h_used, s
    );
  };
  const auto w = mx::astype(*in.w, mx::float32, s);
  return mx::custom_vjp(run, back)({in.stream[0], in.stream[1], w});
}

bool norm_again_fits(const NormAgain& from, mx::StreamOrDevice s) {
  const auto dtype = from.n.dtype();
  return face_of(s, dtype) == Face::gpu && is_kernel_type(dtype) &&
         from.w.dtype() == mx::float32 && from.n.shape(-1) % 8 == 0 &&
         runs_gpu_kernels(s);
}

mx::array norm_again_gpu(const NormAgain& from, mx::StreamOrDevice s) {
  static const GpuKernel kernel{
      "norm_again", "norm/gpu_norm_again.inc", {"n", "w"}, {"y"}
  };
  const auto dtype = from.n.dtype();
  auto launch = launch_of(from.n);
  launch.types = {{"T", dtype}};
  launch.shapes = {from.n.shape()};
  launch.dtypes = {dtype};
  launch.on_cpu = [dtype, dim = from.n.shape(-1)](const KernelOnCpu& k) {
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < k.items; ++item) {
        norm_again_item<T>(item, dim, k.in<T>(0), k.in<float>(1), k.out<T>(0));
      }
    });
  };
  return run_gpu_kernel(kernel, {from.n, from.w}, std::move(launch), s)[0];
}

}  // namespace hearth::ops
