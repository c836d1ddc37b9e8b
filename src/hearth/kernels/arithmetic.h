#pragma once
// The plain arithmetic a training step needs between its large ops, over
// ranges of arrays.
#include <cstdint>

#include "hearth/kernels/scalar.h"

namespace hearth::kernels {

struct ArithmeticKernels {
  // y = a + b; y may be a.
  void (*add_f32)(long n, const float* a, const float* b, float* y) noexcept;
  void (*add_bf16)(long n, const Bf16* a, const Bf16* b, Bf16* y) noexcept;
  void (*add_mixed)(long n, const float* a, const Bf16* b, float* y) noexcept;
  // y = s x; y may be x.
  void (*scale_f32)(long n, float s, const float* x, float* y) noexcept;
  void (*scale_bf16)(long n, float s, const Bf16* x, Bf16* y) noexcept;
  // y += s x
  void (*accumulate_f32)(long n, float s, const float* x, float* y) noexcept;
  void (*accumulate_bf16)(long n, float s, const Bf16* x, float* y) noexcept;
  // Squares are summed in float32 within runs of 1,024 elements, and the sums
  // of the runs in double.
  double (*sum_squares_f32)(long n, const float* x) noexcept;
  double (*sum_squares_bf16)(long n, const Bf16* x) noexcept;

  // Elements [begin, end) of x rounded up or down at random, so that the mean
  // over many keys is x; begin is a multiple of kNoiseGroup. Element i takes 16
  // random bits of Philox under `key`: of counter (i / 128) * 16 + i % 16, word
  // w / 2, its low half for even w = (i / 16) % 8 and its high half else. So
  // the result depends on key and index alone.
  static constexpr long kNoiseGroup = 128;
  void (*float_to_bf16_stochastic)(
      long begin,
      long end,
      std::uint64_t key,
      const float* x,
      Bf16* y
  ) noexcept;

  auto scale(float*) const { return scale_f32; }
  auto scale(Bf16*) const { return scale_bf16; }
  auto accumulate(float*) const { return accumulate_f32; }
  auto accumulate(Bf16*) const { return accumulate_bf16; }
  auto sum_squares(float*) const { return sum_squares_f32; }
  auto sum_squares(Bf16*) const { return sum_squares_bf16; }
  auto add(float*, float*) const { return add_f32; }
  auto add(Bf16*, Bf16*) const { return add_bf16; }
  auto add(float*, Bf16*) const { return add_mixed; }
};

}  // namespace hearth::kernels
