// The product families of each instruction set.
#include "hearth/kernels/gemm_int8_impl.h"
#if defined(__AMX_TILE__)
#include "hearth/kernels/amx/gemm_tiles_impl.h"
#endif

namespace hearth::kernels::HEARTH_ISA {
namespace {

using Fp32Core = VectorCore<Fp32Step>;
using WidenedCore = VectorCore<WidenedStep>;
#if defined(__AMX_TILE__)
constexpr std::size_t kScratchBf16 = TileProduct<Bf16Tiles>::kScratch;
constexpr std::size_t kScratchI8 = TileProduct<Int8Tiles>::kScratch;
constexpr auto kRunBf16 = run_tiles<Bf16Tiles>;
constexpr auto kRunI8 = run_tiles<Int8Tiles>;
constexpr int kBf16Rows = 32;
constexpr bool kBf16Blocks = true;
#else
#if defined(__AVX512BF16__)
using Bf16Core = VectorCore<PairStep>;
#else
using Bf16Core = WidenedCore;
#endif
using I8Core = Int8Core;
constexpr std::size_t kScratchBf16 = scratch_of<Bf16Core>();
constexpr std::size_t kScratchI8 = scratch_of<I8Core>();
constexpr auto kRunBf16 = run_range<Bf16Core>;
constexpr auto kRunI8 = run_range<I8Core>;
constexpr int kBf16Rows = kTileRows;
constexpr bool kBf16Blocks = false;
#endif

}  // namespace

const GemmKernels gemm{
    .bf16 =
        {.operand = GemmScalar::bf16,
         .columns = kPanel,
         .rows = kBf16Rows,
         .depth = kPairDepth,
         .reads_blocks = kBf16Blocks,
         .scratch_bytes = kScratchBf16,
         .packed_bytes = packed_bytes_bf16,
         .pack = pack_bf16,
         .run = kRunBf16},
    .bf16_widened =
        {.operand = GemmScalar::bf16,
         .columns = kPanel,
         .rows = kTileRows,
         .depth = kPairDepth,
         .reads_blocks = false,
         .scratch_bytes = scratch_of<WidenedCore>(),
         .packed_bytes = packed_bytes_bf16,
         .pack = pack_bf16,
         .run = run_range<WidenedCore>},
    .f32 =
        {.operand = GemmScalar::f32,
         .columns = kPanel,
         .rows = kTileRows,
         .depth = 1,
         .reads_blocks = false,
         .scratch_bytes = scratch_of<Fp32Core>(),
         .packed_bytes = packed_bytes_f32,
         .pack = pack_f32,
         .run = run_range<Fp32Core>},
    .i8 = {
        .operand = GemmScalar::i8,
        .columns = kPanel,
        .rows = kBf16Rows,
        .depth = kQuadDepth,
        .reads_blocks = false,
        .scratch_bytes = kScratchI8,
        .packed_bytes = packed_bytes_i8,
        .pack = pack_i8,
        .run = kRunI8
    },
};

}  // namespace hearth::kernels::HEARTH_ISA
