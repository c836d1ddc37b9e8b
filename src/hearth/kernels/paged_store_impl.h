#pragma once
// Tokens into pages, and pages back into rows.
#include "hearth/kernels/paged_words_impl.h"
#include "hearth/kernels/simd/transpose_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// A row in the page's format, before it is laid out. Returns the scale.
inline float encode(KvFormat f, const float* row, long dim, void* out) {
  if (f == KvFormat::f32) {
    __builtin_memcpy(out, row, static_cast<std::size_t>(dim) * 4);
  } else if (f == KvFormat::bf16) {
    each_vector(0, dim, [&](long i, auto lanes) {
      store(static_cast<Bf16*>(out) + i, load(row + i, lanes), lanes);
    });
  } else if (f == KvFormat::f16) {
    each_vector(0, dim, [&](long i, auto lanes) {
      const F32 x = load(row + i, lanes), most = splat(65504.0f);
      store(static_cast<Fp16*>(out) + i, max(min(x, most), neg(most)), lanes);
    });
  } else {
    F32 largest = zero();
    each_vector(0, dim, [&](long i, auto lanes) {
      largest = max(abs(load(row + i, lanes)), largest);
    });
    const float top = reduce_max(largest);
    const float inverse = top > 0 ? 127 / top : 0;
    auto* codes = static_cast<unsigned char*>(out);
    each_vector(0, dim, [&](long i, auto lanes) {
      alignas(64) float lane[kLanes];
      store(lane, round(load(row + i, lanes) * splat(inverse)));
      const long n = dim - i < kLanes ? dim - i : kLanes;
      for (long l = 0; l < n; ++l) {
        codes[i + l] =
            static_cast<unsigned char>(static_cast<int>(lane[l]) + 128);
      }
    });
    return top / 127;
  }
  return 1;
}

void append(
    const PagedKv& kv,
    long token,
    const float* key,
    const float* value
) noexcept {
  std::byte* at = kv.pages[token / kv.page_tokens] + kv.offset;
  const long slot = token % kv.page_tokens;
  const long element = kv_bytes_per_element(kv.format);
  const long half = kv.dim * kv.page_tokens * element;
  alignas(64) Word row[256];
  const float key_scale = encode(kv.format, key, kv.dim, row);
  auto* words = reinterpret_cast<AnyWord*>(at) + slot;
  for (long w = 0; w < kv.dim * element / 4; ++w) {
    words[w * kv.page_tokens] = row[w];
  }
  const float value_scale =
      encode(kv.format, value, kv.dim, at + half + slot * kv.dim * element);
  if (kv.format != KvFormat::i8) return;
  auto* scales = reinterpret_cast<AnyFloat*>(at + 2 * half);
  scales[slot] = key_scale;
  scales[kv.page_tokens + slot] = value_scale;
}

// A row of words as floats.
template <class Format>
HEARTH_INLINE void decode_row(
    const AnyWord* words,
    long dim,
    float scale,
    float* out
) {
  constexpr int kE = Format::kElements;
  alignas(64) float lane[kE][kLanes];
  const long count = dim / kE;
  for (long w = 0; w < count; w += kLanes) {
    const long n = count - w < kLanes ? count - w : kLanes;
    alignas(64) Word some[kLanes] = {};
    __builtin_memcpy(some, words + w, static_cast<std::size_t>(n) * 4);
    const I32 x = load_words(reinterpret_cast<const std::byte*>(some));
    for (int e = 0; e < kE; ++e) {
      store(
          lane[e],
          (Format::element(x, e) - splat(Format::kOffset)) * splat(scale)
      );
    }
    for (long l = 0; l < n; ++l) {
      for (int e = 0; e < kE; ++e) out[(w + l) * kE + e] = lane[e][l];
    }
  }
}

template <class Format>
HEARTH_INLINE void put_row(
    const AnyWord* words,
    long dim,
    float scale,
    bool bf16,
    void* out
) {
  if (bf16 && Format::kBf16) {
    __builtin_memcpy(out, words, static_cast<std::size_t>(dim) * 2);
    return;
  }
  alignas(64) float row[256];
  decode_row<Format>(words, dim, scale, row);
  if (!bf16) {
    __builtin_memcpy(out, row, static_cast<std::size_t>(dim) * 4);
    return;
  }
  each_vector(0, dim, [&](long i, auto lanes) {
    store(static_cast<Bf16*>(out) + i, load(row + i, lanes), lanes);
  });
}

// Sixteen tokens' keys as rows of words.
inline void transpose_keys(
    const Page& page,
    long words,
    long tokens,
    long first,
    Word* out
) {
  const auto* in = reinterpret_cast<const AnyWord*>(page.keys) + first;
  if (words % 16 == 0) {
    for (long w = 0; w < words; w += 16) {
      transpose_words(in + w * tokens, tokens * 4, out + w, words * 4);
    }
    return;
  }
  for (long t = 0; t < 16; ++t) {
    for (long w = 0; w < words; ++w) out[t * words + w] = in[w * tokens + t];
  }
}

template <class Format>
void gather_pages(
    const PagedKv& kv,
    long begin,
    long end,
    bool bf16,
    std::byte* keys,
    std::byte* values
) {
  constexpr bool kScaled = Format::kElements == 4;
  constexpr long kTransposed = 16;
  const long words = kv.dim / Format::kElements, tokens = kv.page_tokens;
  const long row = kv.dim * (bf16 ? 2 : 4);
  alignas(64) Word transposed[kTransposed * 256];
  for (long t = begin; t < end; t += tokens) {
    const Page page = page_at(kv, t / tokens);
    const long count = end - t < tokens ? end - t : tokens;
    const auto* value = reinterpret_cast<const AnyWord*>(page.values);
    for (long i = 0; i < count; ++i) {
      const long slot = i % kTransposed;
      if (slot == 0) transpose_keys(page, words, tokens, i, transposed);
      put_row<Format>(
          transposed + slot * words, kv.dim, kScaled ? page.key_scales[i] : 1,
          bf16, keys + (t - begin + i) * row
      );
      put_row<Format>(
          value + i * words, kv.dim, kScaled ? page.value_scales[i] : 1, bf16,
          values + (t - begin + i) * row
      );
    }
  }
}

void gather(
    const PagedKv& kv,
    long begin,
    long end,
    bool bf16,
    void* keys,
    void* values
) noexcept {
  with_format(kv.format, [&](auto format) {
    gather_pages<decltype(format)>(
        kv, begin, end, bf16, static_cast<std::byte*>(keys),
        static_cast<std::byte*>(values)
    );
  });
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
