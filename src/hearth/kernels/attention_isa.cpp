// Attention of every instruction set: picks the products by the types at hand
// and runs the algorithms of attention/ over them.
#include "hearth/kernels/attention/backward_impl.h"
#include "hearth/kernels/attention/forward_impl.h"
#if defined(__AMX_TILE__)
#include "hearth/kernels/attention/tile_backward_impl.h"
#include "hearth/kernels/attention/tile_forward_impl.h"
#include "hearth/kernels/attention/transposed_impl.h"
#endif

namespace hearth::kernels::HEARTH_ISA {
namespace {

bool narrow(const AttentionArgs& a) {
  return a.query_type != AttentionType::kFloat32 &&
         a.kv_type != AttentionType::kFloat32;
}

#if defined(__AMX_TILE__)
bool fits_tiles(const AttentionArgs& a) {
  return narrow(a) && a.kv_type == AttentionType::kBfloat16 &&
         a.dim <= kTileMaxDim;
}
#endif

// Also what decode needs.
std::size_t forward_scratch(const AttentionArgs& a) noexcept {
  if (!narrow(a)) return ForwardBlock<FloatDot>(a, nullptr).scratch_bytes();
  const std::size_t bytes = ForwardBlock<Bf16Dot>(a, nullptr).scratch_bytes();
#if defined(__AMX_TILE__)
  const std::size_t tiled = fits_tiles(a)
                                ? TileForward(a, nullptr).scratch_bytes()
                                : TransposedForward(a, nullptr).scratch_bytes();
  return tiled > bytes ? tiled : bytes;
#else
  return bytes;
#endif
}

void forward(
    const AttentionArgs& a,
    std::ptrdiff_t begin,
    std::ptrdiff_t end,
    void* scratch
) noexcept {
#if defined(__AMX_TILE__)
  if (fits_tiles(a)) return tile_forward_units(a, begin, end, scratch);
  if (narrow(a) && a.kv_type == AttentionType::kBfloat16) {
    return transposed_forward_units(a, begin, end, scratch);
  }
#endif
  const auto run = narrow(a) ? forward_units<Bf16Dot> : forward_units<FloatDot>;
  run(a, begin, end, scratch);
}

std::size_t backward_scratch(const AttentionGradArgs& g) noexcept {
#if defined(__AMX_TILE__)
  if (fits_tiles(g.forward)) return TileBackward(g, nullptr).scratch_bytes();
#endif
  return narrow(g.forward) ? BackwardUnit<Bf16Dot>(g, nullptr).scratch_bytes()
                           : BackwardUnit<FloatDot>(g, nullptr).scratch_bytes();
}

void backward(
    const AttentionGradArgs& g,
    std::ptrdiff_t begin,
    std::ptrdiff_t end,
    void* scratch
) noexcept {
#if defined(__AMX_TILE__)
  if (fits_tiles(g.forward)) return tile_backward_units(g, begin, end, scratch);
#endif
  const auto run =
      narrow(g.forward) ? backward_units<Bf16Dot> : backward_units<FloatDot>;
  run(g, begin, end, scratch);
}

void decode(
    const AttentionArgs& a,
    std::ptrdiff_t begin,
    std::ptrdiff_t end,
    float* partials,
    void* scratch
) noexcept {
  const auto run = narrow(a) ? decode_units<Bf16Dot> : decode_units<FloatDot>;
  run(a, begin, end, partials, scratch);
}

void decode_combine(
    const AttentionArgs& a,
    std::ptrdiff_t begin,
    std::ptrdiff_t end,
    const float* partials
) noexcept {
  combine_chunks(a, begin, end, partials);
}

void quantize(
    const AttentionQuantizeArgs& a,
    std::ptrdiff_t begin,
    std::ptrdiff_t end
) noexcept {
  for (std::ptrdiff_t r = begin; r < end; ++r) {
    std::int8_t* to = a.to + r * a.to_stride;
    float* scale_out = a.scales + r * a.scale_stride;
    if (a.type == AttentionType::kFloat32) {
      const float* from = static_cast<const float*>(a.from);
      quantize_row(from + r * a.from_stride, a.dim, to, scale_out);
    } else {
      const Bf16* from = static_cast<const Bf16*>(a.from);
      quantize_row(from + r * a.from_stride, a.dim, to, scale_out);
    }
  }
}

}  // namespace

const AttentionKernels attention{
    .forward_scratch = forward_scratch,
    .forward = forward,
    .backward_scratch = backward_scratch,
    .backward = backward,
    .decode = decode,
    .decode_combine = decode_combine,
    .quantize = quantize,
};

}  // namespace hearth::kernels::HEARTH_ISA
