#include "hearth/ops/gemm.h"

#include <algorithm>

#include "hearth/kernels/gemm_plan.h"
#include "hearth/kernels/table.h"

namespace hearth::ops {
namespace {

using kernels::GemmArgs;
using kernels::GemmFamily;
using kernels::GemmPack;
using kernels::GemmScalar;

// Tokens whose x is packed at a time, and so one block of depth of the product:
// 4 KiB a column, the most a kernel sums up in one go.
long token_block(const GemmFamily& family) {
  return family.operand == GemmScalar::bf16 ? 2048 : 1024;
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

std::size_t element_bytes(GemmScalar type) {
  return type == GemmScalar::bf16 ? 2 : 4;
}
const void* advance(const void* p, long elements, GemmScalar type) {
  return static_cast<const std::byte*>(p) +
         elements * static_cast<long>(element_bytes(type));
}

}  // namespace

const GemmFamily& gemm_family(const kernels::Table& table, GemmScalar operand) {
  return operand == GemmScalar::bf16 ? kernels::bf16_gemm(table)
                                     : table.gemm->f32;
}

void pack_gemm(
    ThreadPool& pool,
    const GemmFamily& family,
    const GemmPack& pack
) {
  // Along the source's rows, so that each thread reads on in memory.
  const bool columns = pack.by_column;
  pool.parallel_for(
      static_cast<std::size_t>(columns ? pack.n : pack.k),
      static_cast<std::size_t>(columns ? family.columns : family.depth),
      [&](std::size_t begin, std::size_t end) {
        const kernels::GemmRange part{
            static_cast<long>(begin), static_cast<long>(end)
        };
        if (columns)
          family.pack(pack, part, {0, pack.k});
        else
          family.pack(pack, {0, pack.n}, part);
      }
  );
}

std::size_t gemm_scratch_bytes(const GemmFamily& family, int threads) {
  return round_up(family.scratch_bytes) * static_cast<std::size_t>(threads);
}

void run_gemm(
    ThreadPool& pool,
    const GemmFamily& family,
    const GemmArgs& args,
    std::byte* scratch
) {
  const auto grid = kernels::gemm_grid(family, args.m, args.n, pool.size());
  pool.run([&](int worker) {
    const auto part = kernels::gemm_part(family, args.m, args.n, grid, worker);
    const std::size_t share = round_up(family.scratch_bytes);
    family.run(
        args, part.rows, part.columns,
        scratch + share * static_cast<std::size_t>(worker)
    );
  });
}

std::size_t weight_gradient_scratch_bytes(
    const GemmFamily& family,
    long tokens,
    long k,
    int threads
) {
  return gemm_scratch_bytes(family, threads) +
         round_up(
             family.packed_bytes(k, std::min(tokens, token_block(family)))
         );
}

void weight_gradients(
    ThreadPool& pool,
    const GemmFamily& family,
    const WeightGradients& w,
    std::span<const WeightGradientOf> parts,
    std::byte* scratch
) {
  if (parts.empty()) return;
  const GemmScalar type = family.operand;
  std::byte* packed = scratch + gemm_scratch_bytes(family, pool.size());
  long t = 0;
  do {
    const long tokens = std::min(token_block(family), w.tokens - t);
    pack_gemm(
        pool, family,
        {.source = advance(w.x, t * w.x_stride, type),
         .type = type,
         .stride = w.x_stride,
         .by_column = false,
         .n = w.k,
         .k = tokens,
         .packed = packed}
    );
    for (const WeightGradientOf& part : parts) {
      run_gemm(
          pool, family,
          {.m = part.n,
           .n = w.k,
           .k = tokens,
           .a = advance(part.dy, t * part.dy_stride, type),
           .a_stride = part.dy_stride,
           .a_transposed = true,
           .a_in_blocks = w.dy_in_blocks,
           .packed = packed,
           .c = part.dw,
           .c_stride = w.k,
           .accumulate = part.accumulate || t > 0,
           .scale = w.scale},
          scratch
      );
    }
    t += tokens;
  } while (t < w.tokens);
}

bool product_goes_past_caches(long m, long n, const GemmFamily& family) {
  // Below it the op that follows finds enough of it in the caches to make up
  // for what storing past them saves.
  constexpr std::size_t kLeast = std::size_t{8} << 20;
  return static_cast<std::size_t>(m * n) * element_bytes(family.operand) >=
         kLeast;
}

}  // namespace hearth::ops
