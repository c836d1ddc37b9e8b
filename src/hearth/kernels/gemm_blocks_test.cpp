// A in blocks of 32 x 32 gives what the same A in rows gives, bit for bit.
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/kernels/gemm.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

constexpr std::uint16_t kNan = 0x7fc1;

std::vector<Bf16> some_bf16(long count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<Bf16> out(static_cast<std::size_t>(count));
  for (Bf16& x : out) {
    const auto bits = static_cast<std::uint16_t>(random());
    x.bits = static_cast<std::uint16_t>((bits & 0x807f) | 0x3f00);
  }
  return out;
}

// Zeros fill up the last blocks of a row of blocks; what lies below the last
// row must never be read.
std::vector<Bf16> in_blocks(
    const std::vector<Bf16>& a,
    long rows,
    long columns,
    long stride
) {
  const long padded = (rows + 31) / 32 * 32;
  std::vector<Bf16> out(static_cast<std::size_t>(padded * stride), Bf16{kNan});
  for (long i = 0; i < rows; ++i) {
    for (long k = 0; k < stride; ++k) {
      out[static_cast<std::size_t>(block_place(i, k, stride))] =
          k < columns ? a[static_cast<std::size_t>(i * columns + k)] : Bf16{};
    }
  }
  return out;
}

AlignedBuffer room(std::size_t bytes) {
  return AlignedBuffer(MemoryZone::named("test"), bytes);
}

struct Size {
  long m, n, k;
};

// What lies at `a` is m x k, or k x m where it is transposed.
void expect_alike(const GemmFamily& family, Size s, bool transposed) {
  const long rows = transposed ? s.k : s.m, columns = transposed ? s.m : s.k;
  const long stride = (columns + 31) / 32 * 32;
  const auto a = some_bf16(rows * columns), b = some_bf16(s.n * s.k);
  const auto blocks = in_blocks(a, rows, columns, stride);
  AlignedBuffer packed = room(family.packed_bytes(s.n, s.k));
  family.pack(
      {.source = b.data(),
       .type = GemmScalar::bf16,
       .stride = s.k,
       .by_column = true,
       .n = s.n,
       .k = s.k,
       .packed = packed.data()},
      {0, s.n}, {0, s.k}
  );
  AlignedBuffer scratch = room(family.scratch_bytes);
  std::vector<float> by_rows(static_cast<std::size_t>(s.m * s.n), 1.5f);
  auto by_blocks = by_rows;
  GemmArgs g{
      .m = s.m,
      .n = s.n,
      .k = s.k,
      .a = a.data(),
      .a_stride = columns,
      .a_transposed = transposed,
      .packed = packed.data(),
      .c = by_rows.data(),
      .c_stride = s.n,
      .accumulate = true
  };
  family.run(g, {0, s.m}, {0, s.n}, scratch.data());
  g.a = blocks.data(), g.a_stride = stride, g.a_in_blocks = true;
  g.c = by_blocks.data();
  // Two threads' shares.
  const long half = s.m / 64 * 32;
  family.run(g, {0, half}, {0, s.n}, scratch.data());
  family.run(g, {half, s.m}, {0, s.n}, scratch.data());
  EXPECT_EQ(
      std::memcmp(
          by_rows.data(), by_blocks.data(), by_rows.size() * sizeof(float)
      ),
      0
  ) << s.m
    << "x" << s.n << "x" << s.k << (transposed ? " transposed" : "");
}

TEST(GemmBlocks, AgreeWithRows) {
  bool any = false;
  for (const Table* t : usable_tables()) {
    const GemmFamily& family = t->gemm->bf16;
    if (!family.reads_blocks) continue;
    any = true;
    for (const bool transposed : {false, true}) {
      for (const Size s :
           {Size{1, 33, 31}, Size{64, 64, 64}, Size{300, 40, 100},
            Size{95, 600, 2100}, Size{256, 32, 4200}}) {
        expect_alike(family, s, transposed);
      }
    }
  }
  if (!any) GTEST_SKIP() << "no table here reads blocks: AMX does";
}

}  // namespace
}  // namespace hearth::kernels
