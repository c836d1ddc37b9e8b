#include "hearth/ops/dry_run.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/linear/op.h"
#include "hearth/ops/op.h"

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

TEST(DryRun, SaysTheMostScratchThatAnOpAsksFor) {
  const mx::StreamContext cpu(mx::Device{mx::Device::cpu});
  const auto x = described_leaf({64, 256}, mx::float32);
  const auto w = described_leaf({128, 256}, mx::float32);
  const auto asked = [&](const std::function<mx::array()>& graph) {
    DryRun run;
    run.eval({graph()});
    return run.scratch();
  };
  EXPECT_EQ(asked([&] { return scale(x, mx::array(2.0f)); }), 0u);
  const auto once = asked([&] { return linear(x, w); });
  // What is not packed yet is packed there.
  EXPECT_GT(once, std::size_t{128} * 256 * 4);
  EXPECT_EQ(asked([&] { return full(half(linear(x, w))); }), once);
  // As many bytes as the op has when it runs.
  auto y = linear(mx::ones({64, 256}), mx::ones({128, 256}));
  y.eval();
  const auto stream = mx::default_stream(mx::Device::cpu);
  EXPECT_GE(scratch(stream, 0)->size(), once);
}

// Who bounds what a graph takes by evaluating parts of it is gone through like
// that: the first part is given back before the second is taken.
TEST(DryRun, GoesThroughPartsThatAreEvaluatedMeanwhile) {
  const auto x = described_leaf({1000}, mx::float32);
  const auto part = [&] {
    auto sum = mx::sum(scale(x, mx::array(2.0f)));
    evaluate({sum});
    return sum;
  };
  // One after the other: compilers differ in the order of arguments.
  const auto both = [&] {
    const auto first = part(), second = part();
    return mx::add(first, second);
  };
  EXPECT_EQ(
      dry(both), (Words{"+4064", "+4", "-0", "+4064", "+4", "-2", "-3", "-1"})
  );
  // Without a dry run it is computed.
  auto y = scale(mx::array({1.0f, 2.0f}), mx::array(2.0f));
  evaluate({y});
  EXPECT_EQ(y.data<float>()[1], 4.0f);
}

// Fails where it is not over in time, as a test that hangs is seen by nobody.
class InTime {
 public:
  InTime()
      : watch_([this] {
          std::unique_lock lock(mutex_);
          const auto over = [this] { return over_; };
          if (moved_.wait_for(lock, std::chrono::seconds(60), over)) return;
          std::fputs("DryRun hangs\n", stderr);
          std::_Exit(1);
        }) {}
  ~InTime() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    moved_.notify_all();
    watch_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  bool over_ = false;
  std::thread watch_;
};

// x -> x, until it is evaluated.
class Refusal : public CpuOp {
 public:
  explicit Refusal(mx::Stream s) : CpuOp(s) {}
  HEARTH_OP_NAME(Refusal)
  void eval_cpu(const Arrays&, Arrays&) override {
    throw UsageError("no such thing");
  }
};

mx::array refusal(const mx::array& x) {
  return mx::array(
      x.shape(), x.dtype(),
      std::make_shared<Refusal>(mx::default_stream(mx::Device::cpu)), {x}
  );
}

TEST(DryRun, WhatAnOpThrowsComesOutOfIt) {
  const InTime limit;
  const mx::StreamContext cpu(mx::Device{mx::Device::cpu});
  const auto x = described_leaf({1000}, mx::float32);
  for (const int ops : {0, 1, 2, 3, 30}) {
    auto y = x;
    for (int i = 0; i < ops; ++i) y = i % 2 == 0 ? half(y) : full(y);
    DryRun run;
    EXPECT_THROW(run.eval({full(refusal(y))}), UsageError) << ops;
    // And of the same one, once more.
    run.eval({half(x)});
    EXPECT_EQ(words(run.events()).back()[0], '-');
  }
  EXPECT_EQ(DryRun::current(), nullptr);
}

// A graph that is gone through for its sizes has no numbers to look at.
TEST(DryRun, NumbersThatAreLookedAtAreRefused) {
  const InTime limit;
  const mx::StreamContext cpu(mx::Device{mx::Device::cpu});
  const auto x = described_leaf({1000}, mx::float32);
  DryRun run;
  EXPECT_THROW(mx::sum(half(x)).item<float>(), NoNumbers);
  run.eval({half(x)});
  EXPECT_THROW(mx::sum(x).item<float>(), NoNumbers);
  // What does not depend on it is computed, ops of ours too.
  auto y = scale(mx::array({1.0f, 2.0f}), mx::array(2.0f));
  EXPECT_EQ(mx::sum(y).item<float>(), 6.0f);
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
