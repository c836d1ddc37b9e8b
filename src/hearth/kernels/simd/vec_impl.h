#pragma once
// The vector type the kernels are written over: F32, as many floats as this
// translation unit's instruction set holds in a register (1 without one).
// Include it from *_isa.cpp files and *_impl.h headers only.
//
//   load(p) store(p, x)         p to float, Bf16 or Fp16
//   load(p, n) store(p, x, n)   the first n lanes, 0 <= n <= kLanes; lanes
//                               beyond are zero and memory is not touched
//   store_past(p, x)            p aligned: to memory past the caches
//   splat(v) zero() + - * / fma(a,b,c)=ab+c  fnma(a,b,c)=c-ab
//   min max                     the second operand when either is NaN, as x86
//   abs neg sqrt copysign round (to nearest even)
//   < <= > >= ==  is_nan        a Mask; select(m, a, b) is m ? a : b
//   reduce_add reduce_max       over all lanes, in a fixed order
//   reciprocal_quick(x)         1/x to 2^-14 or better
//   scale(x, n)                 x * 2^n for integral n, right when subnormal
//   to_int to_float bits from_bits and I32's + - & | ^ << >> (logical)
//   mul_wide(a, b, high)        low words of a * b; the high ones to `high`
//   first_lanes(x, n)           zero from lane n on
//   doubled(p)                  p[0] p[0] p[1] p[1] ... (kLanes > 1)
//   swap_pairs(x)               lanes 2i and 2i+1 exchanged (kLanes > 1)
//
// Conversion to Bf16 rounds to nearest, ties to even; NaN stays a quiet NaN.
// Where the processor converts in one instruction (avx512, amx), results below
// the smallest normal number become zero; everywhere else they are kept.
#include "hearth/kernels/isa.h"
#include "hearth/kernels/scalar.h"

#define HEARTH_INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)
#include "hearth/kernels/simd/vec_avx512_impl.h"
#elif defined(__AVX2__)
#include "hearth/kernels/simd/vec_avx2_impl.h"
#elif HEARTH_ISA_IS(neon)
#include "hearth/kernels/simd/vec_neon_impl.h"
#else
#include "hearth/kernels/simd/vec_generic_impl.h"
#endif

namespace hearth::kernels::HEARTH_ISA {
namespace {

#if !defined(__AVX2__)
// An ordinary store: other processors notice by themselves when whole lines are
// written.
template <class T>
HEARTH_INLINE void store_past(T* p, F32 x) {
  store(p, x);
}
HEARTH_INLINE void end_of_stores_past() {}
#endif

HEARTH_INLINE F32 zero() {
  return splat(0.0f);
}
HEARTH_INLINE F32& operator+=(F32& a, F32 b) {
  return a = a + b;
}
HEARTH_INLINE F32& operator-=(F32& a, F32 b) {
  return a = a - b;
}
HEARTH_INLINE F32& operator*=(F32& a, F32 b) {
  return a = a * b;
}
HEARTH_INLINE Mask operator>(F32 a, F32 b) {
  return b < a;
}
HEARTH_INLINE Mask operator>=(F32 a, F32 b) {
  return b <= a;
}

#if HEARTH_SCALE_BY_HALVES
HEARTH_INLINE F32 reciprocal_quick(F32 a) {
  return splat(1.0f) / a;
}
// In two steps, as 2^n itself may be out of range.
HEARTH_INLINE F32 scale(F32 x, F32 n) {
  const F32 half = round(n * splat(0.5f));
  const I32 bias = splat_int(127);
  const F32 a = from_bits((to_int(half) + bias) << 23);
  const F32 b = from_bits((to_int(n - half) + bias) << 23);
  return x * a * b;
}
#endif

// How many lanes a loop's body has: all of them, or the first few of the last
// register's worth.
struct Full {};
struct Part {
  int n;
};
template <class T>
HEARTH_INLINE F32 load(const T* p, Full) {
  return load(p);
}
template <class T>
HEARTH_INLINE F32 load(const T* p, Part part) {
  return load(p, part.n);
}
template <class T>
HEARTH_INLINE void store(T* p, F32 x, Full) {
  store(p, x);
}
template <class T>
HEARTH_INLINE void store(T* p, F32 x, Part part) {
  store(p, x, part.n);
}

// How results are stored that are larger than the caches. A cache line that is
// written in the usual way is read from memory first; one that is stored past
// the caches is not.
class PastCaches {
 public:
  // Past the caches where that is wanted and every row begins at a line.
  template <class T>
  PastCaches(bool wanted, const T* rows, long stride)
      : on_(wanted && kLanes > 1 &&
            (reinterpret_cast<std::uintptr_t>(rows) |
             static_cast<std::uintptr_t>(stride) * sizeof(T)) %
                    64 ==
                0) {}
  // A fence: before it another thread may not see what was stored.
  HEARTH_INLINE ~PastCaches() {
    if (on_) end_of_stores_past();
  }
  PastCaches(const PastCaches&) = delete;
  PastCaches& operator=(const PastCaches&) = delete;

  template <class T>
  HEARTH_INLINE void store(T* p, F32 x, Full) const {
    if (on_)
      store_past(p, x);
    else
      HEARTH_ISA::store(p, x);
  }
  template <class T>
  HEARTH_INLINE void store(T* p, F32 x, Part part) const {
    HEARTH_ISA::store(p, x, part.n);
  }

 private:
  const bool on_;
};

// x with zero in the lanes that the loop's body does not have.
HEARTH_INLINE F32 only(F32 x, Full) {
  return x;
}
HEARTH_INLINE F32 only(F32 x, Part part) {
  return first_lanes(x, part.n);
}

// Calls body(i, lanes) for each register's worth of [begin, end). The body
// passes lanes (Full or Part) on to load and store, which handles the tail.
template <class Body>
HEARTH_INLINE void each_vector(long begin, long end, Body body) {
  long i = begin;
  for (; i + kLanes <= end; i += kLanes) body(i, Full{});
  if (i < end) body(i, Part{static_cast<int>(end - i)});
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
