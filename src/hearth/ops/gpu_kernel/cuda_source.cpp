#include "hearth/ops/gpu_kernel/cuda_source.h"

#include <map>
#include <mutex>

#include <dlfcn.h>
#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::ops {
namespace {

// What a body finds (gpu_kernel.h), without a header.
constexpr const char* kPrelude = R"(
#define GPU_MEMORY
#define GPU_FUNCTION __device__
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
struct Bf16 {
  unsigned short bits;
  Bf16() = default;
  __device__ explicit Bf16(float x) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  }
  __device__ operator float() const {
    return __uint_as_float((unsigned)bits << 16);
  }
};
struct Half {
  unsigned short bits;
  Half() = default;
  __device__ explicit Half(float x) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  }
  __device__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
template <typename T> struct alignas(16) Eight { T v[8]; };
template <typename T> __device__ Eight<T> load8(const T* from) {
  return *(const Eight<T>*)from;
}
template <typename T> __device__ void store8(T* to, Eight<T> from) {
  *(Eight<T>*)to = from;
}
__device__ float lane_sum(float x) {
  for (int apart = 16; apart > 0; apart /= 2) {
    x += __shfl_xor_sync(0xffffffffu, x, apart);
  }
  return x;
}
__device__ float swap_lanes(float x, int apart) {
  return __shfl_xor_sync(0xffffffffu, x, apart);
}
__device__ void wait_for_all() { __syncthreads(); }
__device__ float nan_value() { return __int_as_float(0x7fffffff); }
__device__ float sqrt_of(float x) { return sqrtf(x); }
__device__ float exp_of(float x) { return expf(x); }
__device__ float tanh_of(float x) { return tanhf(x); }
)";

// NVRTC by its documented C interface, which has no types of its own but one
// handle.
struct Compiler {
  int (*create)(
      void**,
      const char*,
      const char*,
      int,
      const char* const*,
      const char* const*
  ) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*log_size)(void*, std::size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*ptx_size)(void*, std::size_t*) = nullptr;
  int (*ptx)(void*, char*) = nullptr;
  int (*destroy)(void**) = nullptr;

  Compiler() {
    find(create, "nvrtcCreateProgram");
    find(compile, "nvrtcCompileProgram");
    find(log_size, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(ptx_size, "nvrtcGetPTXSize");
    find(ptx, "nvrtcGetPTX");
    find(destroy, "nvrtcDestroyProgram");
  }
  bool whole() const {
    return create && compile && log_size && log && ptx_size && ptx && destroy;
  }

 private:
  // In the libraries that are loaded already: MLX's needs it.
  template <class F>
  static void find(F*& f, const char* name) {
    f = reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
  }
};

const Compiler& compiler() {
  static const Compiler all;
  return all;
}

std::string compiled(const std::string& source) {
  const Compiler& c = compiler();
  void* program = nullptr;
  c.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
  const char* options[] = {"--gpu-architecture=compute_80"};
  const bool good = c.compile(program, 1, options) == 0;
  std::size_t size = 0;
  (good ? c.ptx_size : c.log_size)(program, &size);
  std::string text(size, '\0');
  (good ? c.ptx : c.log)(program, text.data());
  c.destroy(&program);
  if (good) return text;
  throw Error(
      fmt::format("[ops.gpu_kernel] a kernel does not compile: {}", text)
  );
}

}  // namespace

bool has_cuda_compiler() {
  return compiler().whole();
}

std::string cuda_type(mx::Dtype dtype) {
  if (dtype == mx::bfloat16) return "Bf16";
  if (dtype == mx::float16) return "Half";
  return dtype == mx::int32 ? "int" : "float";
}

std::string cuda_source(
    const GpuKernel& kernel,
    const std::string& functions,
    const std::string& body,
    const Arrays& inputs,
    const std::vector<mx::Dtype>& outputs
) {
  std::string out = kPrelude + functions;
  out += fmt::format("extern \"C\" __global__ void {}(", kernel.name);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto type = cuda_type(inputs[i].dtype());
    out += fmt::format("const {}* {}, ", type, kernel.inputs[i]);
  }
  out += "const int* sizes";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    out += fmt::format(", {}* {}", cuda_type(outputs[i]), kernel.outputs[i]);
  }
  out += ") {\n";
  out +=
      "const long thread_number = (long)blockIdx.x * blockDim.x + "
      "threadIdx.x;\n" +
      body + "}\n";
  return out;
}

const std::string& compile_cuda(const std::string& source) {
  static std::mutex mutex;
  static std::map<std::string, std::string> made;
  const std::lock_guard lock(mutex);
  auto at = made.find(source);
  if (at == made.end()) at = made.emplace(source, compiled(source)).first;
  return at->second;
}

}  // namespace hearth::ops
