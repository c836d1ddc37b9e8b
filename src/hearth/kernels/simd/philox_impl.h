#pragma once
// Philox 4x32 of base/random.h, one counter a lane.
#include "hearth/kernels/simd/vec_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

struct RandomWords {
  I32 word[4];
};

// The four words of counters `first` + lane; first + kLanes does not pass a
// multiple of 2^32.
HEARTH_INLINE RandomWords random_words(std::uint64_t key, std::uint64_t first) {
  alignas(64) float lane[kLanes];
  for (int i = 0; i < kLanes; ++i) lane[i] = static_cast<float>(i);
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  const auto low = static_cast<std::uint32_t>(first);
  I32 c0 = splat_int(static_cast<int>(low)) + to_int(load(lane));
  I32 c1 = splat_int(static_cast<int>(first >> 32));
  I32 c2 = splat_int(0), c3 = splat_int(0);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    I32 high0, high1;
    const I32 low0 = mul_wide(c0, 0xD2511F53u, high0);
    const I32 low1 = mul_wide(c2, 0xCD9E8D57u, high1);
    c0 = high1 ^ c1 ^ splat_int(static_cast<int>(k0));
    c1 = low1;
    c2 = high0 ^ c3 ^ splat_int(static_cast<int>(k1));
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
