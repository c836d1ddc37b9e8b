#pragma once
// Activations rounded to int8, a scale per unit.
#include "hearth/kernels/quant/panel_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// A unit of activations: the largest magnitude by its bits (magnitudes compare
// as integers, and infinities and NaN lie beyond the finite), and the int8
// codes with their sum.
#if defined(__AVX512F__)
template <int kUnit>
struct UnitValues {
  __m512 v[kUnit / 16];

  void read(const float* x) {
    for (int i = 0; i < kUnit / 16; ++i) v[i] = _mm512_loadu_ps(x + 16 * i);
  }
  void read(const std::uint16_t* x) {
    for (int i = 0; i < kUnit / 16; ++i) {
      const auto* p = reinterpret_cast<const __m256i*>(x + 16 * i);
      v[i] = _mm512_castsi512_ps(
          _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16)
      );
    }
  }
  std::int32_t largest_bits() const {
    __m512i most = _mm512_setzero_si512();
    for (int i = 0; i < kUnit / 16; ++i) {
      most = _mm512_max_epi32(
          most, _mm512_and_si512(
                    _mm512_castps_si512(v[i]), _mm512_set1_epi32(0x7fffffff)
                )
      );
    }
    return _mm512_reduce_max_epi32(most);
  }
  std::int32_t codes(float inv, std::int8_t* out) const {
    __m512i total = _mm512_setzero_si512();
    for (int i = 0; i < kUnit / 16; ++i) {
      const __m512i q =
          _mm512_cvtps_epi32(_mm512_mul_ps(v[i], _mm512_set1_ps(inv)));
      total = _mm512_add_epi32(total, q);
      _mm_storeu_si128(
          reinterpret_cast<__m128i*>(out + 16 * i), _mm512_cvtepi32_epi8(q)
      );
    }
    return _mm512_reduce_add_epi32(total);
  }
};
#else
template <int kUnit>
struct UnitValues {
  float v[kUnit];

  void read(const float* x) {
    for (int i = 0; i < kUnit; ++i) v[i] = x[i];
  }
  void read(const std::uint16_t* x) {
    for (int i = 0; i < kUnit; ++i) v[i] = bf16_to_float(x[i]);
  }
  std::int32_t largest_bits() const {
    std::int32_t most[16] = {};
    for (int i = 0; i < kUnit; i += 16) {
      for (int l = 0; l < 16; ++l) {
        const auto a =
            static_cast<std::int32_t>(float_bits(v[i + l]) & 0x7fffffffu);
        most[l] = a > most[l] ? a : most[l];
      }
    }
    std::int32_t top = 0;
    for (int l = 0; l < 16; ++l) top = most[l] > top ? most[l] : top;
    return top;
  }
  std::int32_t codes(float inv, std::int8_t* out) const {
    std::int32_t q[kUnit], total = 0;
    for (int i = 0; i < kUnit; ++i) {
      // Adding 1.5 * 2^23 leaves the rounded value in the low bits.
      q[i] = static_cast<std::int32_t>(float_bits(v[i] * inv + 12582912.0f)) -
             0x4b400000;
    }
    for (int i = 0; i < kUnit; ++i) total += q[i];
    for (int i = 0; i < kUnit; ++i) out[i] = static_cast<std::int8_t>(q[i]);
    return total;
  }
};
#endif

// One unit: int8 codes and their sum. Returns the scale, NaN where a value is
// not finite.
template <int kUnit>
inline float round_unit(
    const UnitValues<kUnit>& x,
    std::int8_t* codes,
    std::int32_t* sum
) {
  const std::int32_t bits = x.largest_bits();
  const float top = bits_float(static_cast<std::uint32_t>(bits));
  const bool finite = bits < 0x7f800000;
  // A unit this small is zero: its inverse would overflow.
  if (!finite || top <= 1e-36f) {
    std::memset(codes, 0, kUnit);
    *sum = 0;
    return finite ? 0.0f : bits_float(0x7fc00000u);
  }
  *sum = x.codes(127.0f / top, codes);
  return top / 127.0f;
}

// Columns [c, c + kUnit) of a row, zeros from column `cols` on.
template <int kUnit>
inline UnitValues<kUnit> read_unit(
    const QuantMatrix& m,
    long row,
    long c,
    long cols
) {
  const auto read = [&]<class T>(const T* at) {
    UnitValues<kUnit> out;
    if (cols - c >= kUnit) {
      out.read(at);
      return out;
    }
    T there[kUnit] = {};
    for (long i = 0; i < cols - c; ++i) there[i] = at[i];
    out.read(there);
    return out;
  };
  const long at = row * m.ld + c;
  return m.bf16 ? read(static_cast<const std::uint16_t*>(m.data) + at)
                : read(static_cast<const float*>(m.data) + at);
}

template <int kUnit>
inline void round_row(
    const PackedLayout& l,
    const QuantMatrix& x,
    long row,
    const QuantActivations& out
) {
  const long units = l.columns / kUnit, per_group = l.group / kUnit;
  const int bias = (l.format.bits == 8 ? kFullBias : 0) - l.offset;
  float sum = 0.0f;
  for (long u = 0; u < units; ++u) {
    std::int32_t total;
    const float scale = round_unit(
        read_unit<kUnit>(x, row, u * kUnit, l.cols),
        out.codes + row * l.columns + u * kUnit, &total
    );
    out.scales[row * units + u] = scale;
    out.starts[row * units + u] = bias * total;
    if (!l.has_min) continue;
    sum += scale * static_cast<float>(total);
    if ((u + 1) % per_group == 0) {
      out.sums[row * l.groups + u / per_group] = sum;
      sum = 0.0f;
    }
  }
}

void round_activations(
    const PackedLayout& l,
    const QuantMatrix& x,
    long begin,
    long end,
    const QuantActivations& out
) noexcept {
  for (long row = begin; row < end; ++row) {
    if (l.unit == 64) {
      round_row<64>(l, x, row, out);
    } else if (l.unit == 32) {
      round_row<32>(l, x, row, out);
    } else {
      round_row<16>(l, x, row, out);
    }
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
