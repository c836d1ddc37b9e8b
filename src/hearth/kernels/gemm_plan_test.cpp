#include "hearth/kernels/gemm_plan.h"

#include <vector>

#include <gtest/gtest.h>

#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

TEST(GemmPlan, PartsCoverEveryElementOnce) {
  const GemmFamily& family = usable_tables().back()->gemm->f32;
  for (const int threads : {1, 2, 3, 4, 6, 7, 16}) {
    for (const long m : {0L, 1L, 11L, 12L, 13L, 100L, 1000L}) {
      for (const long n : {1L, 16L, 33L, 400L}) {
        std::vector<int> seen(static_cast<std::size_t>(m * n));
        const GemmGrid grid = gemm_grid(family, m, n, threads);
        ASSERT_EQ(grid.rows * grid.columns, threads);
        for (int worker = 0; worker < threads; ++worker) {
          const GemmPart p = gemm_part(family, m, n, grid, worker);
          EXPECT_EQ(
              p.columns.begin % family.columns == 0 ||
                  p.columns.begin == p.columns.end,
              true
          );
          for (long i = p.rows.begin; i < p.rows.end; ++i) {
            for (long j = p.columns.begin; j < p.columns.end; ++j) {
              ++seen[static_cast<std::size_t>(i * n + j)];
            }
          }
        }
        for (const int count : seen) ASSERT_EQ(count, 1);
      }
    }
  }
}

TEST(GemmPlan, ThinProductsAreSharedAlongTheLongSide) {
  const GemmFamily& family = usable_tables().back()->gemm->f32;
  EXPECT_EQ(gemm_grid(family, 8192, 64, 2).rows, 2);
  EXPECT_EQ(gemm_grid(family, 1, 4096, 2).columns, 2);
}

}  // namespace
}  // namespace hearth::kernels
