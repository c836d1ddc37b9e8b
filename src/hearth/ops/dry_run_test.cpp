#include "hearth/ops/dry_run.h"

#include <gtest/gtest.h>

#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/linear/op.h"

namespace hearth::ops {
namespace {

// An event in words: "+100" where 100 bytes are taken, "-2" where buffer 2 is
// given back. Ours have room for their alignment beside their bytes.
std::vector<std::string> words(const std::vector<MemoryEvent>& events) {
  std::vector<std::string> out;
  for (const MemoryEvent& e : events) {
    out.push_back(
        e.bytes > 0 ? "+" + std::to_string(e.bytes)
                    : "-" + std::to_string(e.buffer)
    );
  }
  return out;
}

std::vector<std::string> dry(const std::function<mx::array()>& graph) {
  const mx::StreamContext cpu(mx::Device{mx::Device::cpu});
  DryRun run;
  run.eval({graph()});
  EXPECT_FALSE(run.events().empty());
  return words(run.events());
}

using Words = std::vector<std::string>;

mx::array half(const mx::array& x) {
  return cast(x, mx::bfloat16);
}
mx::array full(const mx::array& x) {
  return cast(x, mx::float32);
}

TEST(DryRun, ABufferComesBackWhenTheNextOpHasRun) {
  const auto x = described_leaf({1000}, mx::float32);
  EXPECT_EQ(
      dry([&] { return half(full(half(full(half(x))))); }),
      (Words{
          "+2064", "+4064", "+2064", "-0", "+4064", "-1", "+2064", "-2", "-3",
          "-4"
      })
  );
}

TEST(DryRun, TakesOverWhatNothingElseNeeds) {
  const auto x = described_leaf({1000}, mx::float32);
  const mx::array factor(2.0f);
  // A leaf is never taken over; what an op made is, unless it is kept.
  EXPECT_EQ(dry([&] { return scale(x, factor); }), (Words{"+4064", "-0"}));
  EXPECT_EQ(
      dry([&] { return scale(scale(x, factor), factor); }),
      (Words{"+4064", "-0"})
  );
  EXPECT_EQ(
      dry([&] {
        const auto kept = scale(x, factor);
        return ops::add(scale(kept, factor), kept);
      }),
      (Words{"+4064", "+4064", "-0", "-1"})
  );
}

TEST(DryRun, TakesNoMemoryAndComputesNothing) {
  // 64 GiB times 64 GiB.
  const auto huge = described_leaf({1 << 17, 1 << 17}, mx::float32);
  const auto before = mx::get_active_memory();
  EXPECT_EQ(
      dry([&] { return linear(huge, huge); }),
      (Words{"+" + std::to_string((std::size_t{1} << 36) + 64), "-0"})
  );
  EXPECT_LT(mx::get_active_memory(), before + 4096);
  EXPECT_EQ(DryRun::current(), nullptr);
}

TEST(DryRun, MlxOwnOpsTakeMemoryAndViewsDoNot) {
  const auto x = described_leaf({10, 100}, mx::float32);
  EXPECT_EQ(
      dry([&] {
        const auto y = mx::exp(x);  // taken
        const auto z = mx::sin(y);  // in its place
        return mx::sum(mx::transpose(mx::reshape(z, {100, 10})), 0);
      }),
      (Words{"+4000", "+400", "-0", "-1"})
  );
}

TEST(DryRun, WhatComesAfterIsComputedAgain) {
  dry([] { return scale(described_leaf({8}, mx::float32), mx::array(2.0f)); });
  const mx::array x({1.0f, 2.0f, 3.0f});
  auto y = scale(x, mx::array(2.0f));
  y.eval();
  EXPECT_EQ(y.data<float>()[2], 6.0f);
}

}  // namespace
}  // namespace hearth::ops
