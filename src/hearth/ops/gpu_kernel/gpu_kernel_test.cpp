// Bodies compiled for a CPU are held against the definitions by the op cases'
// GPU column; with NVIDIA's run-time compiler in the process (LD_PRELOAD; it
// needs no GPU) those cases compile the text for CUDA, too.
#include <algorithm>
#include <regex>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/gpu_kernel/cuda_source.h"
#include "hearth/ops/gpu_kernel/files.h"
#include "hearth/ops/gpu_kernel/self_check.h"

namespace hearth::ops {
namespace {

TEST(GpuKernel, EveryBodyIsCarriedAsText) {
  EXPECT_GE(gpu_kernel_files().size(), 6u);
  for (const auto& file : gpu_kernel_files()) {
    EXPECT_TRUE(file.name.ends_with(".inc")) << file.name;
    EXPECT_FALSE(file.text.empty()) << file.name;
  }
}

TEST(GpuKernel, InputsAreGivenAsTheyAreNamed) {
  const GpuKernel kernel{"k", "rope/gpu_rotate.inc", {"x"}, {"y"}};
  EXPECT_THROW(run_gpu_kernel(kernel, {}, {}, mx::Device::cpu), Error);
}

// A view that skips is laid out first.
TEST(GpuKernel, ReadsDenseRows) {
  if (has_cuda_compiler()) GTEST_SKIP() << "this kernel has no text to compile";
  const GpuKernel kernel{"k", "", {"x"}, {"y"}};
  KernelLaunch launch;
  launch.items = 1;
  launch.shapes = {{3}};
  launch.dtypes = {mx::float32};
  launch.on_cpu = [](const KernelOnCpu& k) {
    std::copy_n(k.in<float>(0), 3, k.out<float>(0));
  };
  const mx::StreamOrDevice cpu = mx::Device(mx::Device::cpu);
  const auto column = mx::take(
      mx::transpose(
          mx::array({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {3, 2}), cpu
      ),
      0, 0, cpu
  );
  const auto view = mx::slice(
      mx::transpose(
          mx::array({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {3, 2}), cpu
      ),
      {0, 0}, {1, 3}, cpu
  );
  auto y = run_gpu_kernel(kernel, {view}, launch, cpu)[0];
  EXPECT_TRUE(mx::array_equal(y, column, cpu).item<bool>());
}

TEST(GpuKernel, SourceForCudaNamesItsParameters) {
  const GpuKernel kernel{"k", "", {"x", "at"}, {"y"}};
  const auto text = cuda_source(
      kernel, "/*functions*/", "/*body*/",
      {mx::zeros({8}, mx::bfloat16), mx::zeros({8}, mx::int32)}, {mx::float32}
  );
  const auto at = text.find(
      "void k(const Bf16* x, const int* at, const int* sizes, float* y) {"
  );
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_LT(text.find("/*functions*/"), at);
  EXPECT_GT(text.find("/*body*/"), at);
}

// Names that are words of Metal's language do not compile there.
TEST(GpuKernel, NoNameIsAWordOfMetal) {
  static const std::regex words(
      R"(\b(thread|threadgroup|constant|kernel|vertex|fragment|sampler|ray_data|object_data|half[0-9]|access|visible|as_type)\b)"
  );
  for (const auto& file : gpu_kernel_files()) {
    const std::string path(file.name.substr(sizeof("src/hearth/ops/") - 1));
    const GpuKernel kernel{"k", path.c_str(), {}, {}};
    const auto text = metal_text(kernel, {}).body;
    const std::regex comments("//[^\n]*");
    const auto code = std::regex_replace(text, comments, "");
    std::smatch found;
    EXPECT_FALSE(std::regex_search(code, found, words))
        << path << ": " << found.str();
  }
}

TEST(GpuKernel, TheSelfCheckAgreesOnACpu) {
  const ScopedFace gpu(Face::gpu);
  EXPECT_TRUE(gpu_kernels_agree(mx::Device(mx::Device::cpu)));
}

// A file that this finds missing is a kernel's which self_check.cpp must try.
TEST(GpuKernel, TheSelfCheckTriesEveryKernel) {
  const ScopedFace gpu(Face::gpu);
  const KernelFilesRun tried;
  ASSERT_TRUE(gpu_kernels_agree(mx::Device(mx::Device::cpu)));
  for (const auto& file : gpu_kernel_files()) {
    const std::string name(file.name.substr(sizeof("src/hearth/ops/") - 1));
    EXPECT_TRUE(tried.names().contains(name)) << name;
  }
}

TEST(GpuKernel, WhatDoesNotCompileSaysWhy) {
  if (!has_cuda_compiler()) GTEST_SKIP() << "no NVIDIA compiler in the process";
  try {
    compile_cuda("__global__ void k() { nonsense; }");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("nonsense"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::ops
