#include "hearth/ops/gpu_kernel/gpu_kernel.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <variant>

#include <fmt/format.h>
#include <mlx/backend/cuda/cuda.h>
#include <mlx/backend/metal/metal.h>
#include <mlx/device.h>
#include <mlx/fast.h>

#include "hearth/base/error.h"
#include "hearth/ops/gpu_kernel/cuda_source.h"
#include "hearth/ops/gpu_kernel/files.h"

namespace hearth::ops {
namespace {

constexpr int kThreads = 128;  // a block, where items do not want more

// What a body finds in Metal; in CUDA: cuda_source.cpp; on a CPU: body_impl.h.
constexpr const char* kMetal = R"text(
#define GPU_MEMORY device
#define GPU_FUNCTION
#define UNROLL _Pragma("clang loop unroll(full)")
#define NO_UNROLL _Pragma("clang loop unroll(disable)")
template <typename T> struct alignas(16) Eight {
  T v[8];
};
template <typename T>
inline Eight<T> load8(const device T* from) {
  return *(const device Eight<T>*)from;
}
template <typename T>
inline void store8(device T* to, Eight<T> from) {
  *(device Eight<T>*)to = from;
}
inline float lane_sum(float x) {
  return metal::simd_sum(x);
}
inline float swap_lanes(float x, int apart) {
  return metal::simd_shuffle_xor(x, (ushort)apart);
}
inline void wait_for_all() {
  metal::threadgroup_barrier(
      metal::mem_flags::mem_threadgroup | metal::mem_flags::mem_device
  );
}
inline float nan_value() {
  return NAN;
}
inline float sqrt_of(float x) {
  return metal::precise::sqrt(x);
}
inline float exp_of(float x) {
  return metal::precise::exp(x);
}
inline float tanh_of(float x) {
  return metal::precise::tanh(x);
}
)text";

std::atomic<bool> metal_is_trusted{false};
thread_local KernelFilesRun* files_run = nullptr;

// What our PTX is made for.
bool since_ampere(mx::Device device) {
  const auto& info = mx::device_info(device);
  const auto at = info.find("compute_capability_major");
  if (at == info.end()) return false;
  const auto* major = std::get_if<std::size_t>(&at->second);
  return major != nullptr && *major >= 8;
}

std::string_view text_of(const char* file_below_ops) {
  const auto name = fmt::format("src/hearth/ops/{}", file_below_ops);
  for (const BuiltinFile& file : gpu_kernel_files()) {
    if (file.name == name) return file.text;
  }
  throw Error(fmt::format("[ops.gpu_kernel] there is no file {}", name));
}

std::string metal_type(mx::Dtype dtype) {
  if (dtype == mx::bfloat16) return "bfloat16_t";
  return dtype == mx::float16 ? "half" : "float";
}

// As many threads as make whole blocks, where there is such a number.
int block_of(const KernelLaunch& launch) {
  const long threads = launch.items * launch.lanes;
  for (const int block : {std::max(kThreads, launch.lanes), 64, 32}) {
    if (block >= launch.lanes && threads % block == 0) return block;
  }
  return kThreads;
}

// The body behind the constants that it names. `thread_number` is the device's.
std::string body_of(
    const GpuKernel& kernel,
    const KernelLaunch& launch,
    bool metal
) {
  std::string out = fmt::format(
      "constexpr int LANES = {};\nconst long item = thread_number / LANES;\n"
      "const int lane = (int)(thread_number % LANES);\n",
      launch.lanes
  );
  // Where no block is in part beyond the items, nobody has to look: what the
  // host has written is far away.
  if (launch.items * launch.lanes % block_of(launch) != 0) {
    out += "if (item >= sizes[0]) return;\n";
  }
  for (const auto& [name, value] : launch.integers) {
    out += fmt::format("constexpr int {} = {};\n", name, value);
  }
  for (const auto& [name, value] : launch.floats) {
    out += fmt::format("constexpr float {} = {:.9e}f;\n", name, value);
  }
  for (const auto& [name, type] : launch.types) {
    out += fmt::format(
        "using {} = {};\n", name, metal ? metal_type(type) : cuda_type(type)
    );
  }
  if (launch.shared > 0) {
    out += fmt::format(
        "{} float shared[{}];\n", metal ? "threadgroup" : "__shared__",
        launch.shared
    );
  }
  out += text_of(kernel.file);
  return out;
}

// The same items one after the other, on a CPU's stream.
class GpuKernelOnCpu : public mx::Primitive {
 public:
  GpuKernelOnCpu(mx::Stream s, KernelLaunch launch)
      : Primitive(s), launch_(std::move(launch)) {}
  const char* name() const override { return "GpuKernelOnCpu"; }
  void eval_cpu(const Arrays& in, Arrays& out) override {
    for (auto& a : out) a.set_data(mx::allocator::malloc(a.nbytes()));
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.dispatch([launch = launch_, in, out]() mutable {
      launch.on_cpu({in, out, launch.items});
    });
  }
  void eval_gpu(const Arrays&, Arrays&) override {}

 private:
  KernelLaunch launch_;
};

std::string cuda_program(
    const GpuKernel& kernel,
    const KernelLaunch& launch,
    const Arrays& inputs
) {
  std::string functions;
  if (kernel.functions != nullptr) functions = text_of(kernel.functions);
  return cuda_source(
      kernel, functions, body_of(kernel, launch, false), inputs, launch.dtypes
  );
}

// Where NVIDIA's compiler is in the process, as tests may have it, the text for
// CUDA is compiled, too.
Arrays on_cpu(
    const GpuKernel& kernel,
    const Arrays& inputs,
    KernelLaunch launch,
    mx::Stream s
) {
  if (has_cuda_compiler()) compile_cuda(cuda_program(kernel, launch, inputs));
  Arrays dense_inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool kept =
        std::ranges::find(kernel.written, i) != kernel.written.end();
    const auto& a = inputs[i];
    // A copy of what is written would be written in its place.
    dense_inputs.push_back(kept ? a : mx::contiguous(a, false, s));
  }
  auto shapes = launch.shapes;
  auto dtypes = launch.dtypes;
  return mx::array::make_arrays(
      std::move(shapes), dtypes,
      std::make_shared<GpuKernelOnCpu>(s, std::move(launch)), dense_inputs
  );
}

}  // namespace

KernelFilesRun::KernelFilesRun() {
  files_run = this;
}
KernelFilesRun::~KernelFilesRun() {
  files_run = nullptr;
}

void note_files(const GpuKernel& kernel) {
  if (files_run == nullptr) return;
  files_run->names_.insert(kernel.file);
  if (kernel.functions != nullptr) files_run->names_.insert(kernel.functions);
}

MetalText metal_text(const GpuKernel& kernel, const KernelLaunch& launch) {
  MetalText text{
      kMetal, "const long thread_number = thread_position_in_grid.x;\n" +
                  body_of(kernel, launch, true)
  };
  if (kernel.functions != nullptr) text.header += text_of(kernel.functions);
  return text;
}

void trust_metal_kernels(bool trusted) {
  metal_is_trusted = trusted;
}

bool runs_gpu_kernels(mx::StreamOrDevice s) {
  const auto device = mx::to_stream(s).device;
  if (device == mx::Device::cpu) return true;
  if (mx::metal::is_available()) return metal_is_trusted;
  static const bool cuda =
      mx::cu::is_available() && has_cuda_compiler() && since_ampere(device);
  return cuda;
}

Arrays run_gpu_kernel(
    const GpuKernel& kernel,
    const Arrays& inputs,
    KernelLaunch launch,
    mx::StreamOrDevice s
) {
  if (kernel.inputs.size() != inputs.size()) {
    throw Error(
        fmt::format("[ops.gpu_kernel] {} is given other inputs", kernel.name)
    );
  }
  note_files(kernel);
  const auto stream = mx::to_stream(s);
  if (launch.items == 0) {
    Arrays none;
    for (std::size_t i = 0; i < launch.shapes.size(); ++i) {
      none.push_back(mx::zeros(launch.shapes[i], launch.dtypes[i], stream));
    }
    return none;
  }
  if (stream.device == mx::Device::cpu) {
    return on_cpu(kernel, inputs, std::move(launch), stream);
  }
  const long threads = launch.items * launch.lanes;
  if (threads > INT_MAX) {
    throw Error("[ops.gpu_kernel] a kernel must have at most 2^31 threads");
  }
  auto all = inputs;
  launch.sizes.insert(launch.sizes.begin(), static_cast<int>(launch.items));
  const int count = static_cast<int>(launch.sizes.size());
  all.push_back(mx::array(launch.sizes.begin(), {count}, mx::int32));
  const std::tuple<int, int, int> grid{static_cast<int>(threads), 1, 1},
      block{block_of(launch), 1, 1};
  if (!mx::metal::is_available()) {
    const auto& ptx = compile_cuda(cuda_program(kernel, launch, inputs));
    const bool dense = true;
    return mx::fast::precompiled_cuda_kernel(
        kernel.name, ptx, all, launch.shapes, launch.dtypes, {}, grid, block, 0,
        {}, dense, stream
    );
  }
  auto names = kernel.inputs;
  names.push_back("sizes");
  const MetalText text = metal_text(kernel, launch);
  const auto run = mx::fast::metal_kernel(
      fmt::format("hearth_{}", kernel.name), names, kernel.outputs, text.body,
      text.header
  );
  return run(
      all, launch.shapes, launch.dtypes, grid, block, {}, {}, false, stream
  );
}

}  // namespace hearth::ops
