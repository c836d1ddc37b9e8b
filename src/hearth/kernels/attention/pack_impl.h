#pragma once
// Brings rows of the caller's tensors into the forms the products read, and
// results back. Padding is zero.
#include "hearth/kernels/attention.h"
#include "hearth/kernels/simd/transpose_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr long round_up(long n, long grain) {
  return (n + grain - 1) / grain * grain;
}

inline long least(long a, long b) {
  return a < b ? a : b;
}
inline long most(long a, long b) {
  return a > b ? a : b;
}

// Hands out parts of the caller's scratch; without memory it only counts bytes.
class Carver {
 public:
  explicit Carver(void* memory)
      : base_(reinterpret_cast<std::uintptr_t>(memory)) {}
  template <class T>
  T* take(long n) {
    T* part = reinterpret_cast<T*>(base_ + static_cast<std::uintptr_t>(used_));
    used_ += round_up(n * static_cast<long>(sizeof(T)), 64);
    return part;
  }
  std::size_t used() const { return static_cast<std::size_t>(used_); }

 private:
  std::uintptr_t base_;
  long used_ = 0;
};

constexpr long item_size(AttentionType type) {
  return type == AttentionType::kFloat32    ? 4
         : type == AttentionType::kBfloat16 ? 2
                                            : 1;
}

inline const char* address(
    const AttentionInput& x,
    AttentionType type,
    long batch,
    long token,
    long head
) {
  const long at = batch * x.batch + token * x.token + head * x.head;
  return static_cast<const char*>(x.data) + at * item_size(type);
}

inline void load_row(const float* src, long n, float* dst) {
  for (long i = 0; i < n; ++i) dst[i] = src[i];
}
inline void load_row(const Bf16* src, long n, float* dst) {
  long i = 0;
  for (; i + kLanes <= n; i += kLanes) store(dst + i, load(src + i));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    store(dst + i, load(src + i, rest), rest);
  }
}
inline void load_row(const Bf16* src, long n, Bf16* dst) {
  long i = 0;
  for (; i + 32 <= n; i += 32) __builtin_memcpy(dst + i, src + i, 64);
  for (; i + 8 <= n; i += 8) __builtin_memcpy(dst + i, src + i, 16);
  for (; i < n; ++i) dst[i] = src[i];
}
inline void load_row(const signed char* src, long n, float* dst) {
  for (long i = 0; i < n; ++i) dst[i] = static_cast<float>(src[i]);
}
// An int8 fits a bf16 exactly, so the scale can be applied later.
inline void load_row(const signed char* src, long n, Bf16* dst) {
  long i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m128i x =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i));
    store(dst + i, F32{_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x))});
  }
#endif
  for (; i < n; ++i) {
    const float x = static_cast<float>(src[i]);
    dst[i].bits =
        static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, x) >> 16);
  }
}
// Bf16 operands are chosen only where no input is fp32.
inline void load_row(const float*, long, Bf16*) {}

template <class Src, class Elem>
void load_rows_of(
    const char* src,
    long stride,
    long n,
    long dim,
    Elem* dst,
    long padded_n,
    long padded_dim
) {
  const Src* rows = reinterpret_cast<const Src*>(src);
  for (long r = 0; r < n; ++r, dst += padded_dim) {
    load_row(rows + r * stride, dim, dst);
    for (long i = dim; i < padded_dim; ++i) dst[i] = Elem{};
  }
  for (long i = 0; i < (padded_n - n) * padded_dim; ++i) dst[i] = Elem{};
}

// dst [padded_n][padded_dim] from n rows of dim.
template <class Elem>
void load_rows(
    AttentionType type,
    const char* src,
    long stride,
    long n,
    long dim,
    Elem* dst,
    long padded_n,
    long padded_dim
) {
  switch (type) {
    case AttentionType::kFloat32:
      return load_rows_of<float>(
          src, stride, n, dim, dst, padded_n, padded_dim
      );
    case AttentionType::kBfloat16:
      return load_rows_of<Bf16>(src, stride, n, dim, dst, padded_n, padded_dim);
    case AttentionType::kInt8:
      return load_rows_of<signed char>(
          src, stride, n, dim, dst, padded_n, padded_dim
      );
  }
}

template <class Out>
void store_row_of(const float* src, float factor, long n, Out* dst) {
  const F32 f = splat(factor);
  long i = 0;
  for (; i + kLanes <= n; i += kLanes) store(dst + i, load(src + i) * f);
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    store(dst + i, load(src + i, rest) * f, rest);
  }
}

// One row of a result, times a factor.
inline void store_row(
    const float* src,
    float factor,
    long dim,
    AttentionType type,
    const AttentionOutput& x,
    long batch,
    long token,
    long head
) {
  const long at = batch * x.batch + token * x.token + head * x.head;
  if (type == AttentionType::kFloat32) {
    store_row_of(src, factor, dim, static_cast<float*>(x.data) + at);
  } else {
    store_row_of(src, factor, dim, static_cast<Bf16*>(x.data) + at);
  }
}

template <class Src>
void quantize_row(
    const Src* from,
    long dim,
    std::int8_t* to,
    float* scale_out
) {
  F32 largest = zero(), broken = zero();
  each_vector(0, dim, [&](long i, auto lanes) {
    const F32 x = load(from + i, lanes);
    largest = max(largest, abs(x));
    broken = fma(x, zero(), broken);
  });
  const float most_of = reduce_max(largest);
  const F32 by = splat(most_of > 0 ? 127.0f / most_of : 0.0f);
  each_vector(0, dim, [&](long i, auto lanes) {
    const F32 x = round(load(from + i, lanes) * by);
    float lane[kLanes];
    store(lane, select(is_nan(x), zero(), x));
    const long n = least(kLanes, dim - i);
    for (long l = 0; l < n; ++l) to[i + l] = static_cast<std::int8_t>(lane[l]);
  });
  *scale_out = most_of / 127.0f + reduce_add(broken);
}

// dst[c][r] = src[r][c] for words: a float each, or a pair of bf16 that stays
// together. Both counts are multiples of 16.
inline void transpose(
    const void* src,
    long rows,
    long columns,
    long lds,
    void* dst,
    long ldd
) {
  const auto* from = static_cast<const char*>(src);
  auto* to = static_cast<char*>(dst);
  for (long r = 0; r < rows; r += 16) {
    for (long c = 0; c < columns; c += 16) {
      transpose_words(
          from + (r * lds + c) * 4, lds * 4, to + (c * ldd + r) * 4, ldd * 4
      );
    }
  }
}

// Rows of operands, in our scratch or where the caller has them.
template <class Elem>
struct Rows {
  const Elem* data;
  long stride;
  Rows from(long row) const { return {data + row * stride, stride}; }
};

constexpr bool holds(AttentionType type, const float*) {
  return type == AttentionType::kFloat32;
}
constexpr bool holds(AttentionType type, const Bf16*) {
  return type == AttentionType::kBfloat16;
}

// As load_rows, but rows that need neither conversion nor padding are used
// where they lie. A pair must not straddle two words.
template <class Elem>
Rows<Elem> rows_in_place(
    AttentionType type,
    const char* src,
    long stride,
    long n,
    long dim,
    Elem* memory,
    long padded_n,
    long padded_dim
) {
  if (holds(type, memory) && n == padded_n && dim == padded_dim &&
      stride % 2 == 0) {
    return {reinterpret_cast<const Elem*>(src), stride};
  }
  load_rows(type, src, stride, n, dim, memory, padded_n, padded_dim);
  return {memory, padded_dim};
}

// B [n / kPair][dim][kPair] from n rows: pairs of rows are interleaved. Floats
// need no change, so they are read where they lie.
inline Rows<float> pair_rows(Rows<float> rows, long, long, float*) {
  return rows;
}
#if defined(__AVX512BF16__)
inline Rows<Bf16> pair_rows(Rows<Bf16> rows, long n, long dim, Bf16* pairs) {
  const auto wide = [](const Bf16* p) {
    return _mm512_cvtepu16_epi32(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
    );
  };
  for (long r = 0; r < n; r += 2) {
    const Bf16 *even = rows.data + r * rows.stride, *odd = even + rows.stride;
    for (long i = 0; i < dim; i += 16) {
      const __m512i high = _mm512_slli_epi32(wide(odd + i), 16);
      _mm512_storeu_si512(
          pairs + r * dim + 2 * i, _mm512_or_si512(wide(even + i), high)
      );
    }
  }
  return {pairs, dim};
}
#endif

// B [dim / kPair][ldb][kPair] from n rows: the rows become columns.
template <class Dot>
void pack_columns(
    Rows<typename Dot::Elem> rows,
    long n,
    long dim,
    typename Dot::Elem* columns,
    long ldb
) {
  transpose(
      rows.data, n, dim / Dot::kPair, rows.stride / Dot::kPair, columns, ldb
  );
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
