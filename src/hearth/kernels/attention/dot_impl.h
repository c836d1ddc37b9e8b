#pragma once
// The products attention is made of, small and register-blocked. A policy
// says how operands are stored and multiplied; the algorithms are written once
// over it:
//   Elem     what operands are stored as: float, or Bf16
//   kPair    elements along k that one multiply-add takes at once
//   kGrain   what counts of queries and keys are padded to
//   kDimGrain  what the head size is padded to
//   kDegree  of the polynomial for exp2, as high as Elem's precision needs
//   product<How>(m, n, k, a, lda, b, ldb, c, ldc, factor)
// A is Elem [m][k]; B is Elem [k / kPair][n][kPair]; C is float [m][n]. Leading
// dimensions count elements of a row of A and C, columns of B. n and k are
// padded; m is any, but the buffers behind A and C hold it padded.
#include "hearth/kernels/simd/vec_impl.h"
#if defined(__AMX_TILE__)
#include "hearth/kernels/amx/tiles_impl.h"
#endif

namespace hearth::kernels::HEARTH_ISA {
namespace {

enum class Into {
  kStore,  // C = A B
  kAdd,    // C = C + A B
  kScale,  // C = factor[row] C + A B
};

#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr int kTileRows = 4, kTileColumns = 2;  // 16 registers
#else
constexpr int kTileRows = 4, kTileColumns = 4;
#endif

struct FloatLanes {
  using Elem = float;
  using Vec = F32;
  static constexpr int kPair = 1, kDegree = 6;
  HEARTH_INLINE static Vec load_b(const Elem* p) { return load(p); }
  HEARTH_INLINE static Vec broadcast(const Elem* p) { return splat(*p); }
  HEARTH_INLINE static F32 dot(Vec a, Vec b, F32 c) { return fma(a, b, c); }
};

#if defined(__AVX512BF16__)
struct Bf16Lanes {
  using Elem = Bf16;
  using Vec = __m512bh;
  static constexpr int kPair = 2, kDegree = 4;
  HEARTH_INLINE static Vec load_b(const Elem* p) {
    return (Vec)_mm512_loadu_si512(p);
  }
  HEARTH_INLINE static Vec broadcast(const Elem* p) {
    int pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return (Vec)_mm512_set1_epi32(pair);
  }
  HEARTH_INLINE static F32 dot(Vec a, Vec b, F32 c) {
    return {_mm512_dpbf16_ps(c.v, a, b)};
  }
};
#endif

template <class Lanes, int R, int N, Into How>
HEARTH_INLINE void register_tile(
    long k,
    const typename Lanes::Elem* a,
    long lda,
    const typename Lanes::Elem* b,
    long ldb,
    float* c,
    long ldc,
    const float* factor
) {
  constexpr int kPair = Lanes::kPair;
  F32 acc[R][N];
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < N; ++j) {
      acc[r][j] = How == Into::kStore ? zero() : load(c + r * ldc + j * kLanes);
      if (How == Into::kScale) acc[r][j] *= splat(factor[r]);
    }
  }
  for (long i = 0; i < k; i += kPair, b += ldb * kPair) {
    typename Lanes::Vec column[N];
    for (int j = 0; j < N; ++j) {
      column[j] = Lanes::load_b(b + j * kLanes * kPair);
    }
    for (int r = 0; r < R; ++r) {
      const auto row = Lanes::broadcast(a + r * lda + i);
      for (int j = 0; j < N; ++j) {
        acc[r][j] = Lanes::dot(row, column[j], acc[r][j]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < N; ++j) store(c + r * ldc + j * kLanes, acc[r][j]);
  }
}

template <class Lanes>
struct VectorDot : Lanes {
  using Elem = typename Lanes::Elem;
  static constexpr int kPair = Lanes::kPair;
  static constexpr int kGrain = 16, kDimGrain = 16 * kPair;

  // Called by a thread before its first product; leave() after its last.
  static void enter() {}
  static void leave() {}

  template <Into How>
  static void product(
      long m,
      long n,
      long k,
      const Elem* a,
      long lda,
      const Elem* b,
      long ldb,
      float* c,
      long ldc,
      const float* factor = nullptr
  ) {
    constexpr long kWidth = kTileColumns * kLanes;
    long j = 0;
    for (; j + kWidth <= n; j += kWidth) {
      panel<kTileColumns, How>(
          m, k, a, lda, b + j * kPair, ldb, c + j, ldc, factor
      );
    }
    for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
      panel<2, How>(m, k, a, lda, b + j * kPair, ldb, c + j, ldc, factor);
    }
    for (; j < n; j += kLanes) {
      panel<1, How>(m, k, a, lda, b + j * kPair, ldb, c + j, ldc, factor);
    }
  }

 private:
  template <int N, Into How>
  static void panel(
      long m,
      long k,
      const Elem* a,
      long lda,
      const Elem* b,
      long ldb,
      float* c,
      long ldc,
      const float* factor
  ) {
    long i = 0;
    const auto rows = [&]<int R>() {
      register_tile<Lanes, R, N, How>(
          k, a + i * lda, lda, b, ldb, c + i * ldc, ldc,
          How == Into::kScale ? factor + i : nullptr
      );
      i += R;
    };
    while (i + kTileRows <= m) rows.template operator()<kTileRows>();
    while (i < m) rows.template operator()<1>();
  }
};

#if defined(__AMX_TILE__)
// Two by two tiles; the operands' layout is the very one tiles are loaded
// from. m is rounded up to 16, and what lies in the padding is multiplied too.
struct TileDot {
  using Elem = Bf16;
  static constexpr int kPair = 2, kGrain = 32, kDimGrain = 32, kDegree = 4;

  static void enter() { tiles::configure(); }
  static void leave() { _tile_release(); }

  template <Into How>
  static void product(
      long m,
      long n,
      long k,
      const Elem* a,
      long lda,
      const Elem* b,
      long ldb,
      float* c,
      long ldc,
      const float* factor = nullptr
  ) {
    if (How == Into::kScale) {
      for (long r = 0; r < m; ++r) {
        if (factor[r] == 1.0f) continue;
        for (long j = 0; j < n; j += kLanes) {
          store(c + r * ldc + j, load(c + r * ldc + j) * splat(factor[r]));
        }
      }
    }
    for (long j = 0; j < n; j += 32) {
      long i = 0;
      for (; i + 16 < m; i += 32) {
        two_by_two<How != Into::kStore>(
            k, a + i * lda, lda, b + 2 * j, ldb, c + i * ldc + j, ldc
        );
      }
      if (i < m) {
        one_by_two<How != Into::kStore>(
            k, a + i * lda, lda, b + 2 * j, ldb, c + i * ldc + j, ldc
        );
      }
    }
  }

 private:
  template <bool kLoad>
  static void two_by_two(
      long k,
      const Elem* a,
      long lda,
      const Elem* b,
      long ldb,
      float* c,
      long ldc
  ) {
    float* below = c + 16 * ldc;
    if (kLoad) {
      _tile_loadd(0, c, ldc * 4);
      _tile_loadd(1, c + 16, ldc * 4);
      _tile_loadd(2, below, ldc * 4);
      _tile_loadd(3, below + 16, ldc * 4);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    for (long i = 0; i < k; i += 32, b += 32 * ldb) {
      _tile_loadd(4, a + i, lda * 2);
      _tile_loadd(6, b, ldb * 4);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b + 32, ldb * 4);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, a + 16 * lda + i, lda * 2);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, ldc * 4);
    _tile_stored(1, c + 16, ldc * 4);
    _tile_stored(2, below, ldc * 4);
    _tile_stored(3, below + 16, ldc * 4);
  }

  template <bool kLoad>
  static void one_by_two(
      long k,
      const Elem* a,
      long lda,
      const Elem* b,
      long ldb,
      float* c,
      long ldc
  ) {
    if (kLoad) {
      _tile_loadd(0, c, ldc * 4);
      _tile_loadd(1, c + 16, ldc * 4);
    } else {
      _tile_zero(0);
      _tile_zero(1);
    }
    for (long i = 0; i < k; i += 32, b += 32 * ldb) {
      _tile_loadd(4, a + i, lda * 2);
      _tile_loadd(6, b, ldb * 4);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b + 32, ldb * 4);
      _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, c, ldc * 4);
    _tile_stored(1, c + 16, ldc * 4);
  }
};
#endif

using FloatDot = VectorDot<FloatLanes>;
#if defined(__AMX_TILE__)
using Bf16Dot = TileDot;
#elif defined(__AVX512BF16__)
using Bf16Dot = VectorDot<Bf16Lanes>;
#else
using Bf16Dot = FloatDot;  // by widening
#endif

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
