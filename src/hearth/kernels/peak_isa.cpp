// The peak loops of every instruction set. Each keeps enough independent
// accumulators in flight to hide the latency of its instruction; reading keeps
// eight loads in flight.
#include "hearth/kernels/isa.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#if defined(__AMX_TILE__)
#include "hearth/kernels/amx/tiles_impl.h"
#endif

namespace hearth::kernels::HEARTH_ISA {
namespace {

// Makes the compiler believe that x is read and changed here, so the loop is
// neither folded nor removed.
template <class V>
inline void keep(V& x) {
#if defined(__aarch64__)
  asm volatile("" : "+w"(x));
#elif defined(__AVX512F__)
  asm volatile("" : "+v"(x));  // all 32 registers
#else
  asm volatile("" : "+x"(x));
#endif
}

#if defined(__AVX512F__)
using F32 = __m512;
constexpr int kChains = 20, kLanes = 16;
inline F32 splat(float x) {
  return _mm512_set1_ps(x);
}
inline F32 fma(F32 a, F32 b, F32 c) {
  return _mm512_fmadd_ps(a, b, c);
}
#elif defined(__AVX2__)
using F32 = __m256;
constexpr int kChains = 12, kLanes = 8;
inline F32 splat(float x) {
  return _mm256_set1_ps(x);
}
inline F32 fma(F32 a, F32 b, F32 c) {
  return _mm256_fmadd_ps(a, b, c);
}
#elif defined(__aarch64__)
using F32 = float32x4_t;
constexpr int kChains = 24, kLanes = 4;
inline F32 splat(float x) {
  return vdupq_n_f32(x);
}
inline F32 fma(F32 a, F32 b, F32 c) {
  return vfmaq_f32(c, a, b);
}
#else
using F32 = float;
constexpr int kChains = 12, kLanes = 1;
inline F32 splat(float x) {
  return x;
}
inline F32 fma(F32 a, F32 b, F32 c) {
  return a * b + c;
}
#endif

double fp32(long rounds) noexcept {
  F32 acc[kChains];
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) acc[c] = splat(1.0f);
  F32 x = splat(0.5f), y = splat(0.25f);
  keep(x), keep(y);
  for (long i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) {
      acc[c] = fma(acc[c], x, y);
      keep(acc[c]);
    }
  }
  return 2.0 * kLanes * kChains * static_cast<double>(rounds);
}

#if defined(__AMX_TILE__)
#define HEARTH_BF16_LOOP 1
#define HEARTH_INT8_LOOP 1
inline void zero_tiles() {
  tiles::configure();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
}

// A tile product is 16x16x32 bf16 or 16x16x64 int8 multiply-adds.
double bf16(long rounds) noexcept {
  zero_tiles();
  for (long i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
  return 2.0 * 16 * 16 * 32 * 4 * static_cast<double>(rounds);
}
double int8(long rounds) noexcept {
  zero_tiles();
  for (long i = 0; i < rounds; ++i) {
    _tile_dpbssd(0, 4, 5);
    _tile_dpbssd(1, 4, 5);
    _tile_dpbssd(2, 4, 5);
    _tile_dpbssd(3, 4, 5);
  }
  _tile_release();
  return 2.0 * 16 * 16 * 64 * 4 * static_cast<double>(rounds);
}
#elif defined(__AVX512BF16__) && defined(__AVX512VNNI__)
#define HEARTH_BF16_LOOP 1
#define HEARTH_INT8_LOOP 1
double bf16(long rounds) noexcept {
  __m512 acc[kChains];
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) acc[c] = _mm512_setzero_ps();
  __m512i x = _mm512_set1_epi32(0x3f003f00), y = x;
  keep(x), keep(y);
  for (long i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) {
      acc[c] = _mm512_dpbf16_ps(acc[c], (__m512bh)x, (__m512bh)y);
      keep(acc[c]);
    }
  }
  return 2.0 * 32 * kChains * static_cast<double>(rounds);
}
double int8(long rounds) noexcept {
  __m512i acc[kChains];
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) acc[c] = _mm512_setzero_si512();
  __m512i x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(5);
  keep(x), keep(y);
  for (long i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) {
      acc[c] = _mm512_dpbusd_epi32(acc[c], x, y);
      keep(acc[c]);
    }
  }
  return 2.0 * 64 * kChains * static_cast<double>(rounds);
}
#endif

#if defined(__AVX512F__)
using Word = __m512i;
inline Word join(Word a, const void* p) {
  return _mm512_xor_si512(a, _mm512_loadu_si512(p));
}
inline unsigned long fold(Word a) {
  return static_cast<unsigned long>(_mm512_reduce_or_epi64(a));
}
#elif defined(__AVX2__)
using Word = __m256i;
inline Word join(Word a, const void* p) {
  return _mm256_xor_si256(a, _mm256_loadu_si256(static_cast<const Word*>(p)));
}
inline unsigned long fold(Word a) {
  return static_cast<unsigned long>(
      _mm256_extract_epi64(a, 0) | _mm256_extract_epi64(a, 1) |
      _mm256_extract_epi64(a, 2) | _mm256_extract_epi64(a, 3)
  );
}
#elif defined(__aarch64__)
using Word = uint64x2_t;
inline Word join(Word a, const void* p) {
  return veorq_u64(a, vld1q_u64(static_cast<const uint64_t*>(p)));
}
inline unsigned long fold(Word a) {
  return vgetq_lane_u64(a, 0) | vgetq_lane_u64(a, 1);
}
#else
using Word = unsigned long;
inline Word join(Word a, const void* p) {
  return a ^ *static_cast<const unsigned long*>(p);
}
inline unsigned long fold(Word a) {
  return a;
}
#endif

unsigned long read(const void* data, long bytes) noexcept {
  constexpr long kStreams = 8, kStep = kStreams * long{sizeof(Word)};
  const char* p = static_cast<const char*>(data);
  Word acc[kStreams] = {};
  for (long i = 0; i < bytes; i += kStep) {
#pragma GCC unroll 8
    for (long s = 0; s < kStreams; ++s) {
      acc[s] = join(acc[s], p + i + s * long{sizeof(Word)});
    }
  }
  unsigned long all = 0;
  for (const Word& a : acc) all ^= fold(a);
  return all;
}

}  // namespace

const PeakKernels peak{
    .fp32 = fp32,
#if defined(HEARTH_BF16_LOOP)
    .bf16 = bf16,
#else
    .bf16 = nullptr,
#endif
#if defined(HEARTH_INT8_LOOP)
    .int8 = int8,
#else
    .int8 = nullptr,
#endif
    .read = read,
};

}  // namespace hearth::kernels::HEARTH_ISA
