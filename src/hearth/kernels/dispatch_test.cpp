// Which table is chosen, and what an unknown name says.
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

TEST(Dispatch, GenericIsFirstAndAlwaysRuns) {
  ASSERT_FALSE(usable_tables().empty());
  EXPECT_STREQ(tables().front()->isa, "generic");
  EXPECT_EQ(usable_tables().front(), tables().front());
}

TEST(Dispatch, AnUnknownNameListsTheKnown) {
  try {
    table_named("avx51");
    FAIL();
  } catch (const UsageError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("generic"), std::string::npos);
    EXPECT_NE(what.find("got 'avx51'"), std::string::npos);
  }
}

TEST(Dispatch, EveryUsableTableCanBeNamed) {
  for (const Table* t : usable_tables()) EXPECT_EQ(&table_named(t->isa), t);
}

// ctest runs this once per table with HEARTH_ISA set.
TEST(Dispatch, TheForcedTableIsLive) {
  const auto forced = env::get(env::kIsa);
  if (!forced) {
    EXPECT_EQ(&best(), usable_tables().back());
    return;
  }
  EXPECT_EQ(best().isa, *forced);
}

TEST(Peak, LoopsCountTheirOperations) {
  for (const Table* t : usable_tables()) {
    ASSERT_NE(t->peak->fp32, nullptr);
    EXPECT_DOUBLE_EQ(t->peak->fp32(10), 10 * t->peak->fp32(1));
    for (const PeakLoop loop : {t->peak->bf16, t->peak->int8}) {
      if (loop == nullptr) continue;
      EXPECT_GT(loop(1), t->peak->fp32(1) / 2);
    }
  }
}

TEST(Peak, ReadDependsOnEveryByte) {
  std::vector<unsigned char> bytes(4096, 0);
  for (const Table* t : usable_tables()) {
    EXPECT_EQ(t->peak->read(bytes.data(), 4096), 0u);
    for (const int at : {0, 7, 511, 512, 3000, 4095}) {
      bytes[static_cast<std::size_t>(at)] = 1;
      EXPECT_NE(t->peak->read(bytes.data(), 4096), 0u) << t->isa << " " << at;
      bytes[static_cast<std::size_t>(at)] = 0;
    }
  }
}

}  // namespace
}  // namespace hearth::kernels
