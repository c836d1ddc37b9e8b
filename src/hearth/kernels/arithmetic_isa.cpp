#include "hearth/kernels/arithmetic.h"
#include "hearth/kernels/simd/philox_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

template <class A, class B>
void add(long n, const A* a, const B* b, A* y) noexcept {
  each_vector(0, n, [&](long i, auto lanes) {
    store(y + i, load(a + i, lanes) + load(b + i, lanes), lanes);
  });
}

template <class T>
void scale_by(long n, float s, const T* x, T* y) noexcept {
  const F32 factor = splat(s);
  each_vector(0, n, [&](long i, auto lanes) {
    store(y + i, factor * load(x + i, lanes), lanes);
  });
}

template <class T>
void accumulate(long n, float s, const T* x, float* y) noexcept {
  const F32 factor = splat(s);
  each_vector(0, n, [&](long i, auto lanes) {
    store(y + i, fma(factor, load(x + i, lanes), load(y + i, lanes)), lanes);
  });
}

template <class T>
double sum_squares(long n, const T* x) noexcept {
  // Long enough for speed, short enough that single precision loses little:
  // 64 terms a lane.
  constexpr long kRun = 256 * kLanes < 1024 ? 256 * kLanes : 1024;
  double total = 0;
  for (long begin = 0; begin < n; begin += kRun) {
    const long end = begin + kRun < n ? begin + kRun : n;
    F32 sum[4] = {zero(), zero(), zero(), zero()};
    long i = begin;
    for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const F32 v = load(x + i + j * kLanes);
        sum[j] = fma(v, v, sum[j]);
      }
    }
    each_vector(i, end, [&](long j, auto lanes) {
      const F32 v = load(x + j, lanes);
      sum[0] = fma(v, v, sum[0]);
    });
    total +=
        static_cast<double>(reduce_add((sum[0] + sum[1]) + (sum[2] + sum[3])));
  }
  return total;
}

// Noise below the last kept bit, then the rest is cut off.
HEARTH_INLINE F32 add_noise(F32 x, I32 noise) {
  const I32 kept = splat_int(static_cast<int>(0xffff0000u));
  return select(is_nan(x), x, from_bits((bits(x) + noise) & kept));
}

void float_to_bf16_stochastic(
    long begin,
    long end,
    std::uint64_t key,
    const float* x,
    Bf16* y
) noexcept {
  constexpr long kGroup = ArithmeticKernels::kNoiseGroup, kRow = 16;
  const I32 low_half = splat_int(0xffff);
  for (long at = begin; at < end; at += kGroup) {
    for (long lane = 0; lane < kRow; lane += kLanes) {
      const long first = at / kGroup * kRow + lane;
      const auto random = random_words(key, static_cast<std::uint64_t>(first));
      for (long w = 0; w < kGroup / kRow; ++w) {
        const long i = at + w * kRow + lane;
        if (i >= end) break;
        const I32 word = random.word[w / 2];
        const I32 noise = w % 2 == 0 ? word & low_half : word >> 16;
        const int n = static_cast<int>(end - i < kLanes ? end - i : kLanes);
        store(y + i, add_noise(load(x + i, n), noise), n);
      }
    }
  }
}

}  // namespace

const ArithmeticKernels arithmetic{
    .add_f32 = add<float, float>,
    .add_bf16 = add<Bf16, Bf16>,
    .add_mixed = add<float, Bf16>,
    .scale_f32 = scale_by<float>,
    .scale_bf16 = scale_by<Bf16>,
    .accumulate_f32 = accumulate<float>,
    .accumulate_bf16 = accumulate<Bf16>,
    .sum_squares_f32 = sum_squares<float>,
    .sum_squares_bf16 = sum_squares<Bf16>,
    .float_to_bf16_stochastic = float_to_bf16_stochastic,
};

}  // namespace hearth::kernels::HEARTH_ISA
