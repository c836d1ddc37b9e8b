#pragma once
// Converts and stores finished pieces of C, with their epilogue.
#include "hearth/kernels/amx/tile_block_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// How a finished piece gets to C. All but the last know that all columns are
// there and that there is no epilogue; bf16_past goes past the caches.
enum class Finish : unsigned char { bf16, bf16_past, f32, f32_added, epilogue };

inline bool goes_past(const GemmArgs& g) {
  const auto at = reinterpret_cast<std::uintptr_t>(g.c);
  const auto row = static_cast<std::uintptr_t>(g.c_stride) * sizeof(Bf16);
  return g.past_caches && is_plain(g) && !g.accumulate && !g.gate &&
         g.c_type == GemmScalar::bf16 && (at | row) % 64 == 0;
}

inline Finish finish_of(const GemmArgs& g, long j, bool past) {
  if (j + kPanel > g.n || !is_plain(g)) return Finish::epilogue;
  if (g.c_type == GemmScalar::f32)
    return g.accumulate ? Finish::f32_added : Finish::f32;
  if (g.accumulate) return Finish::epilogue;
  return past ? Finish::bf16_past : Finish::bf16;
}

// A finished piece whose rows still have to be converted and stored.
struct PendingPiece {
  const GemmArgs* g = nullptr;
  long i = 0, j = 0, row = 0, rows = 0;
  Finish finish = Finish::epilogue;
  const float* sums = nullptr;

  HEARTH_INLINE void advance(long count) {
    const long end = smaller(rows, row + count);
    if (row >= end) return;
    switch (finish) {
      case Finish::bf16:
        store<Finish::bf16>(end);
        break;
      case Finish::bf16_past:
        store<Finish::bf16_past>(end);
        break;
      case Finish::f32:
        store<Finish::f32>(end);
        break;
      case Finish::f32_added:
        store<Finish::f32_added>(end);
        break;
      case Finish::epilogue:
        store_with_epilogue(end);
        break;
    }
    row = end;
  }

 private:
  // Members are read into locals once, because GCC must assume that any store
  // may change them.
  template <Finish kFinish>
  HEARTH_INLINE void store(long end) const {
    constexpr bool kPast = kFinish == Finish::bf16_past;
    constexpr long kBytes = kPast || kFinish == Finish::bf16 ? 2 : 4;
    const long stride = g->c_stride * kBytes;
    const float* from = sums + row * kPanel;
    char* c = static_cast<char*>(g->c) + (i + row) * stride + j * kBytes;
    for (long n = end - row; n > 0; --n, from += kPanel, c += stride) {
      __m512 low = _mm512_load_ps(from), high = _mm512_load_ps(from + 16);
      if constexpr (kBytes == 2) {
        const auto both = (__m512i)_mm512_cvtne2ps_pbh(high, low);
        if constexpr (kPast)
          _mm512_stream_si512(reinterpret_cast<__m512i*>(c), both);
        else
          _mm512_storeu_si512(c, both);
      } else {
        if constexpr (kFinish == Finish::f32_added) {
          low = _mm512_add_ps(low, _mm512_loadu_ps(c));
          high = _mm512_add_ps(high, _mm512_loadu_ps(c + 64));
        }
        _mm512_storeu_ps(c, low);
        _mm512_storeu_ps(c + 64, high);
      }
    }
  }
  [[gnu::noinline]] void store_with_epilogue(long end) const {
    for (long r = row; r < end; ++r) {
      if (g->c_type == GemmScalar::bf16)
        finish_row<Bf16>(*g, i + r, j, sums + r * kPanel);
      else
        finish_row<float>(*g, i + r, j, sums + r * kPanel);
    }
  }
};

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
