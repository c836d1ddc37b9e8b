#include "hearth/cli/interrupt.h"

#include <csignal>

#include <gtest/gtest.h>

#include "hearth/cli/command.h"

namespace hearth::cli {

// The table is in main.cpp, which is no part of the library.
std::span<const Command> commands() {
  return {};
}

namespace {

TEST(InterruptGuard, ASignalIsNotedUntilTheOutermostGuardIsGone) {
  {
    const InterruptGuard outer;
    EXPECT_FALSE(InterruptGuard::interrupted());
    {
      const InterruptGuard inner;
      EXPECT_FALSE(InterruptGuard::interrupted());
      std::raise(SIGINT);
      EXPECT_TRUE(InterruptGuard::interrupted());
    }
    EXPECT_TRUE(InterruptGuard::interrupted());
    const InterruptGuard later;
    EXPECT_TRUE(InterruptGuard::interrupted()) << "a guard inside forgets";
  }
  const InterruptGuard fresh;
  EXPECT_FALSE(InterruptGuard::interrupted());
}

TEST(InterruptGuard, GivesTheHandlersBack) {
  const auto mine = [](int) {};
  std::signal(SIGTERM, mine);
  {
    const InterruptGuard outer;
    const InterruptGuard inner;
    std::raise(SIGTERM);
    EXPECT_TRUE(InterruptGuard::interrupted());
  }
  EXPECT_EQ(std::signal(SIGTERM, SIG_DFL), +mine);
}

TEST(InterruptGuard, SaysWhatHappensNextOnce) {
  testing::internal::CaptureStderr();
  {
    const InterruptGuard outer("stopping\n");
    const InterruptGuard inner;
    std::raise(SIGINT);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "stopping\n");
}

}  // namespace
}  // namespace hearth::cli
