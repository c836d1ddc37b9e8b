#pragma once
// The words that pages are made of: how one of each format is read, and where
// the parts of a page lie.
#include "hearth/kernels/paged_attention.h"
#include "hearth/kernels/simd/vec_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

using Word = std::uint32_t;
using AnyWord [[gnu::may_alias]] = Word;
using AnyFloat [[gnu::may_alias]] = float;

// How a word of each format is read: element e of every lane's word.
struct WordF32 {
  static constexpr bool kBf16 = false;
  static constexpr int kElements = 1;
  static constexpr float kOffset = 0;
  HEARTH_INLINE static F32 element(I32 w, int) { return from_bits(w); }
};
struct WordBf16 {
  static constexpr bool kBf16 = true;
  static constexpr int kElements = 2;
  static constexpr float kOffset = 0;
  HEARTH_INLINE static F32 element(I32 w, int e) {
    return from_bits(
        e == 0 ? w << 16 : w & splat_int(static_cast<int>(0xffff0000u))
    );
  }
};
struct WordF16 {
  static constexpr bool kBf16 = false;
  static constexpr int kElements = 2;
  static constexpr float kOffset = 0;
  // The exponent's bias put right by a product, which subnormals survive.
  HEARTH_INLINE static F32 element(I32 w, int e) {
    const I32 h = e == 0 ? w : w >> 16;
    const F32 size = from_bits((h & splat_int(0x7fff)) << 13) * splat(0x1p112f);
    return from_bits(bits(size) | (h & splat_int(0x8000)) << 16);
  }
};
struct WordI8 {
  static constexpr bool kBf16 = false;
  static constexpr int kElements = 4;
  static constexpr float kOffset = 128;
  HEARTH_INLINE static F32 element(I32 w, int e) {
    return to_float(e == 3 ? w >> 24 : w >> (8 * e) & splat_int(0xff));
  }
};

template <class Body>
HEARTH_INLINE void with_format(KvFormat f, Body body) {
  switch (f) {
    case KvFormat::f32:
      return body(WordF32{});
    case KvFormat::bf16:
      return body(WordBf16{});
    case KvFormat::f16:
      return body(WordF16{});
    case KvFormat::i8:
      return body(WordI8{});
  }
}

HEARTH_INLINE I32 load_words(const std::byte* p) {
  return bits(load(reinterpret_cast<const AnyFloat*>(p)));
}

// A page's part of one layer and head.
struct Page {
  const std::byte *keys, *values;
  const AnyFloat *key_scales, *value_scales;
};
HEARTH_INLINE Page page_at(const PagedKv& kv, long index) {
  const std::byte* at = kv.pages[index] + kv.offset;
  const long half = kv.dim * kv.page_tokens * kv_bytes_per_element(kv.format);
  const auto* scales = reinterpret_cast<const AnyFloat*>(at + 2 * half);
  return {at, at + half, scales, scales + kv.page_tokens};
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
