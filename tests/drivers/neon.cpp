// The NEON kernels against the plain ones, without a test framework: it is
// cross-compiled and run under an emulator by tools/check_neon.sh. Prints what
// differs and returns how many did.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace generic {
extern const AttentionKernels attention;
extern const GemmKernels gemm;
extern const OptimKernels optim;
}  // namespace generic
namespace neon {
extern const AttentionKernels attention;
extern const GemmKernels gemm;
extern const OptimKernels optim;
}  // namespace neon

namespace {

int failures = 0;

void expect_close(
    const char* what,
    const std::vector<float>& a,
    const std::vector<float>& b,
    double tolerance
) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double{a[i]} - double{b[i]});
    worst = d <= worst ? worst : d;  // NaN counts
  }
  const bool right = worst <= tolerance;
  failures += right ? 0 : 1;
  std::printf("%s %s: %g\n", right ? "ok  " : "FAIL", what, worst);
}

std::vector<float> noise(std::size_t n, unsigned seed) {
  std::vector<float> v(n);
  std::uint32_t x = seed * 2654435761u + 1;
  for (float& f : v) {
    x = x * 1664525u + 1013904223u;
    f = static_cast<float>(static_cast<std::int32_t>(x >> 8)) * 0x1p-23f - 1;
  }
  return v;
}
std::vector<Bf16> halves(const std::vector<float>& v) {
  std::vector<Bf16> h(v.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &v[i], 4);
    h[i].bits = static_cast<std::uint16_t>(bits >> 16);
  }
  return h;
}

void* aligned(std::size_t bytes) {
  return std::aligned_alloc(64, (bytes + 64) / 64 * 64);
}

std::vector<float> product(const GemmFamily& f, long m, long n, long k) {
  const auto a = noise(static_cast<std::size_t>(m * k), 1);
  const auto b = noise(static_cast<std::size_t>(n * k), 2);
  const auto ah = halves(a), bh = halves(b);
  const bool half = f.operand == GemmScalar::bf16;
  void* packed = aligned(f.packed_bytes(n, k));
  void* scratch = aligned(f.scratch_bytes);
  f.pack(
      {.source = half ? static_cast<const void*>(bh.data()) : b.data(),
       .type = f.operand,
       .stride = k,
       .by_column = true,
       .n = n,
       .k = k,
       .packed = packed},
      {0, n}, {0, k}
  );
  std::vector<float> c(static_cast<std::size_t>(m * n));
  GemmArgs g;
  g.m = m, g.n = n, g.k = k;
  g.a = half ? static_cast<const void*>(ah.data()) : a.data();
  g.a_stride = k;
  g.packed = packed;
  g.c = c.data();
  g.c_stride = n;
  f.run(g, {0, m}, {0, n}, scratch);
  std::free(packed);
  std::free(scratch);
  return c;
}

std::vector<float> attend(const AttentionKernels& kernels) {
  constexpr long kTokens = 70, kHeads = 2, kDim = 40;
  const std::size_t n = kTokens * kHeads * kDim;
  const auto q = noise(n, 3), k = noise(n, 4), v = noise(n, 5);
  std::vector<float> out(n), lse(kTokens * kHeads);
  const auto view = [&](auto* data) {
    return AttentionSlice<decltype(data)>{
        data, kTokens * kHeads * kDim, kHeads * kDim, kDim
    };
  };
  AttentionArgs a;
  a.heads = a.kv_heads = kHeads;
  a.queries = a.keys = kTokens;
  a.dim = kDim;
  a.q = view(static_cast<const void*>(q.data()));
  a.k = view(static_cast<const void*>(k.data()));
  a.v = view(static_cast<const void*>(v.data()));
  a.out = view(static_cast<void*>(out.data()));
  a.lse = lse.data();
  a.scale = 0.2f;
  a.causal = true;
  void* scratch = aligned(kernels.forward_scratch(a));
  kernels.forward(a, 0, attention_forward_units(a), scratch);
  std::free(scratch);
  out.insert(out.end(), lse.begin(), lse.end());
  return out;
}

std::vector<float> step(const OptimKernels& kernels) {
  constexpr long kCount = 301;
  auto w = noise(kCount, 6), m = noise(kCount, 7), v = noise(kCount, 8);
  const auto g = noise(kCount, 9);
  for (float& x : v) x = x * x + 0.1f;
  kernels.f32.adamw(
      {0.01f, 0.9f, 0.99f, 1e-8f, 0.1f, 2.0f, 3.0f},
      {g.data(), 0.5f, w.data(), nullptr}, m.data(), v.data(), 0, kCount
  );
  w.insert(w.end(), m.begin(), m.end());
  w.insert(w.end(), v.begin(), v.end());
  return w;
}

}  // namespace
}  // namespace hearth::kernels

int main() {
  using namespace hearth::kernels;
  for (const long k : {1L, 65L, 300L}) {
    expect_close(
        "f32 product", product(neon::gemm.f32, 37, 50, k),
        product(generic::gemm.f32, 37, 50, k), 1e-4
    );
    expect_close(
        "bf16 product", product(neon::gemm.bf16, 37, 50, k),
        product(generic::gemm.bf16, 37, 50, k), 1e-3
    );
  }
  expect_close(
      "attention", attend(neon::attention), attend(generic::attention), 1e-5
  );
  expect_close("adamw", step(neon::optim), step(generic::optim), 1e-6);
  return failures;
}
