#include "hearth/base/effort.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using Reason = EffortError::Reason;

Reason reason_of(Effort& effort, std::uint64_t units) {
  try {
    effort.spend(units);
  } catch (const EffortError& error) {
    return error.reason();
  }
  ADD_FAILURE() << "nothing was thrown";
  return Reason::too_large;
}

TEST(Effort, IsSpentToItsEndAndNotBeyond) {
  Effort effort(10);
  effort.spend(4);
  effort.spend(6);
  EXPECT_EQ(effort.left(), 0U);
  EXPECT_EQ(reason_of(effort, 1), Reason::too_large);
  Effort large(10);
  EXPECT_EQ(reason_of(large, ~std::uint64_t{0}), Reason::too_large);
  EXPECT_EQ(large.left(), 10U);
}

TEST(Effort, EndsAtItsDeadline) {
  Effort effort(1'000'000);
  effort.until(Clock::now() + std::chrono::hours(1));
  effort.spend(100'000);
  effort.until(Clock::now());
  EXPECT_EQ(reason_of(effort, 100'000), Reason::deadline);
}

TEST(Effort, IsCalledOff) {
  const auto flag = std::make_shared<std::atomic<bool>>(false);
  Effort effort(1'000'000'000);
  effort.unless(flag);
  effort.spend(100'000);
  *flag = true;
  // Small steps notice it as well, though not each of them.
  int steps = 0;
  EXPECT_THROW(
      {
        for (; steps < 1'000'000; ++steps) effort.spend();
      },
      EffortError
  );
  EXPECT_LT(steps, 100'000);
  EXPECT_EQ(reason_of(effort, 100'000), Reason::cancelled);
}

}  // namespace
}  // namespace hearth
