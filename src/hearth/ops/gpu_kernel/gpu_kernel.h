#pragma once
// A kernel of ours for a GPU, written once. Its body is a file in the subset of
// C++ that CUDA, Metal and an ordinary compiler share: MLX compiles its text on
// the machine it runs on, and the same file, included in a function, is what a
// CPU runs, so that tests hold it against the definition where there is no GPU.
//
// A body computes one item with LANES threads side by side, of which it is
// `lane`. It finds
//   item, lane, LANES   which item, and which thread of those at work on it
//                       (one on a CPU, so that a loop `i += LANES` holds all)
//   its inputs and outputs by name, as pointers to dense rows
//   its constants       integers, floats and types, by name; what changes from
//                       batch to batch is in sizes[1] and on, as each constant
//                       is compiled for
//   Eight<T>, load8, store8    eight neighbours, moved at once
//   lane_sum(x)         the sum over the item's threads, which all get
//   swap_lanes(x, apart)   the x of the thread whose number differs by that
//                       power of two, below 32; every thread must ask
//   shared[], wait_for_all()   floats that all of an item's threads see, and
//                       the place where each waits for the others and for what
//                       they wrote, where more than 32 work on one
//   UNROLL, NO_UNROLL   before a loop
//   sqrt_of, exp_of, tanh_of, nan_value   of floats
// and must compute in float, convert by T(x) and float(x), and not use pointers
// other than `GPU_MEMORY T*`, nor a word of Metal's own (`thread`) as a name.
// An input has eight elements at least: Metal hands smaller ones over
// otherwise.
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/ops/op.h"

namespace hearth::ops {

// What a CPU's form of a kernel works on: all its items, one after the other.
struct KernelOnCpu {
  const Arrays& inputs;
  Arrays& outputs;
  long items = 0;

  template <class T>
  const T* in(std::size_t i) const {
    return inputs[i].data<T>();
  }
  template <class T>
  T* out(std::size_t i) const {
    return outputs[i].data<T>();
  }
};

struct GpuKernel {
  const char* name;
  const char* file;  // of the body, below ops/
  std::vector<std::string> inputs, outputs;
  const char* functions = nullptr;  // a file of functions that the body calls
  // Those inputs, by place, are written where they lie: dense arrays that
  // somebody keeps. What reads them must come later, by what it is computed
  // from or because it is evaluated later.
  std::vector<std::size_t> written = {};
};

struct KernelLaunch {
  long items = 0;
  int lanes = 1;           // 1, 32 or a multiple of 128
  int shared = 0;          // floats
  std::vector<int> sizes;  // sizes[1] and on; sizes[0] is items
  std::vector<std::pair<std::string, int>> integers;
  std::vector<std::pair<std::string, float>> floats;
  std::vector<std::pair<std::string, mx::Dtype>> types;
  std::vector<mx::Shape> shapes;  // of the outputs
  std::vector<mx::Dtype> dtypes;
  std::function<void(const KernelOnCpu&)> on_cpu;
};

Arrays run_gpu_kernel(
    const GpuKernel& kernel,
    const Arrays& inputs,
    KernelLaunch launch,
    mx::StreamOrDevice s
);

// Whether this stream's device runs kernels of ours: CUDA since Ampere, Metal
// once it is trusted, and a CPU that stands in for them. Else MLX's ops do.
bool runs_gpu_kernels(mx::StreamOrDevice s);

// Metal's text cannot be compiled where it is written, so a Mac tries it first
// (self_check.h). Not trusted at first.
void trust_metal_kernels(bool trusted);

// While one lives, the files of the kernels that this thread puts into graphs:
// how a test sees that the self check forgets none. They do not nest.
class KernelFilesRun {
 public:
  KernelFilesRun();
  ~KernelFilesRun();
  KernelFilesRun(const KernelFilesRun&) = delete;
  KernelFilesRun& operator=(const KernelFilesRun&) = delete;
  // Bodies, and files of functions that they call; below ops/.
  const std::set<std::string>& names() const { return names_; }

 private:
  friend void note_files(const GpuKernel& kernel);
  std::set<std::string> names_;
};

// What MLX is given for Metal.
struct MetalText {
  std::string header, body;
};
MetalText metal_text(const GpuKernel& kernel, const KernelLaunch& launch);

// Calls f with a null pointer to the type of a kernel's activations.
template <class F>
void with_kernel_type(mx::Dtype dtype, F&& f) {
  if (dtype == mx::bfloat16) return f(static_cast<mx::bfloat16_t*>(nullptr));
  if (dtype == mx::float16) return f(static_cast<mx::float16_t*>(nullptr));
  f(static_cast<float*>(nullptr));
}
inline bool is_kernel_type(mx::Dtype dtype) {
  return dtype == mx::bfloat16 || dtype == mx::float16 || dtype == mx::float32;
}

}  // namespace hearth::ops
