// What the base class promises: alignment, donation, flags, the budget, the
// run-ahead limit, work on the stream's thread.
#include "hearth/ops/op.h"

#include <cstdint>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/ops/leaf.h"

namespace hearth::ops {
namespace {

// y = 2x, taking x's buffer where it may.
class Twice : public CpuOp {
 public:
  explicit Twice(bool take, std::latch* wait = nullptr)
      : CpuOp(mx::default_stream(mx::Device::cpu)), take_(take), wait_(wait) {}
  HEARTH_OP_NAME(Twice)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    if (take_) {
      took = take_or_allocate(in[0], out[0]);
    } else {
      allocate(out);
    }
    ++encoded;
    launch([n = in[0].size(), x = in[0].data<float>(), y = out[0].data<float>(),
            wait = wait_](const Execution&) noexcept {
      if (wait != nullptr) wait->wait();
      for (std::size_t i = 0; i < n; ++i) y[i] = 2 * x[i];
    });
  }
  static inline bool took = false;
  static inline std::atomic<int> encoded = 0;

 private:
  bool take_;
  std::latch* wait_;
};

mx::array twice(
    const mx::array& x,
    bool take = false,
    std::latch* w = nullptr
) {
  return mx::array(
      x.shape(), mx::float32, std::make_shared<Twice>(take, w), {x}
  );
}

class Op : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

TEST_F(Op, OutputsAreAlignedAndTellTheirLayout) {
  for (int n : {1, 3, 100, 5000}) {
    auto y = twice(mx::ones({n, 2}));
    y.eval();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(y.data<float>()) % 64, 0u);
    EXPECT_TRUE(y.flags().row_contiguous);
    EXPECT_EQ(y.flags().col_contiguous, n == 1);
    // MLX's own ops read it in the order it has.
    auto t = mx::transpose(y);
    auto sum = mx::sum(mx::subtract(t, mx::full({2, n}, 2.0f)));
    EXPECT_EQ(sum.item<float>(), 0.0f);
  }
}

TEST_F(Op, OutputsStayDonatable) {
  auto y = twice(twice(mx::ones({64})), true);
  y.eval();
  EXPECT_TRUE(Twice::took);
  EXPECT_EQ(y.data<float>()[63], 4.0f);
  auto leaf = make_leaf({64}, mx::float32, MemoryZone::named("test"));
  twice(leaf, true).eval();
  EXPECT_FALSE(Twice::took);
}

TEST_F(Op, BudgetRefusesAndTheNextEvaluationIsRight) {
  const auto x = mx::ones({1 << 20});
  mx::eval(x);
  set_memory_budget(memory_usage().total + (2 << 20));
  EXPECT_THROW(twice(x).eval(), OutOfMemory);
  set_memory_budget(memory_usage().total + (6 << 20));
  auto y = twice(x);
  EXPECT_NO_THROW(y.eval());
  set_memory_budget(0);
  EXPECT_EQ(y.data<float>()[12345], 2.0f);
}

TEST_F(Op, MlxMemoryIsInTheLedger) {
  const auto before = memory_usage().external;
  auto y = twice(mx::ones({1 << 20}));
  y.eval();
  EXPECT_GE(memory_usage().external, before + (4u << 20));
}

TEST_F(Op, RunAheadIsBounded) {
  std::latch release(1);
  auto y = mx::ones({8});
  for (int i = 0; i < 10; ++i) y = twice(y, false, i == 0 ? &release : nullptr);
  Twice::encoded = 0;
  set_run_ahead(3);
  // The first op blocks; encoding must stop with three unfinished, and only
  // then is it let go.
  std::thread opener([&] {
    while (Twice::encoded < 3) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(Twice::encoded, 3);
    release.count_down();
  });
  y.eval();
  opener.join();
  set_run_ahead(2);
  EXPECT_EQ(y.data<float>()[0], 1024.0f);
}

TEST_F(Op, GpuEvaluationIsRefused) {
  Twice op(false);
  Arrays none;
  EXPECT_THROW(op.eval_gpu(none, none), Error);
}

TEST_F(Op, WorkOnTheStreamComesAfterWhatWasSentAndThrowsBack) {
  const auto s = mx::default_stream(mx::Device::cpu);
  auto y = twice(mx::ones({4}));
  mx::async_eval({y});
  float seen = 0;
  run_on_stream("test", s, [&](const Execution&) {
    seen = y.data<float>()[3];
  });
  EXPECT_EQ(seen, 2.0f);
  const auto fail = [](const Execution&) { throw UsageError("no"); };
  EXPECT_THROW(run_on_stream("test", s, fail), UsageError);
  run_on_stream("test", s, [&](const Execution&) { seen = 7; });
  EXPECT_EQ(seen, 7.0f);
}

TEST_F(Op, LeavesAreAlignedZeroChargedAndUpdatedInPlace) {
  const auto zone = MemoryZone::named("leaf test");
  {
    auto leaf = make_leaf({3, 5}, mx::bfloat16, zone);
    EXPECT_GE(zone.live(), 30u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(leaf.data<char>()) % 64, 0u);
    EXPECT_EQ(mx::sum(mx::astype(leaf, mx::float32)).item<float>(), 0.0f);
    leaf.data<std::uint16_t>()[4] = 0x3f80;
    EXPECT_EQ(mx::sum(mx::astype(leaf, mx::float32)).item<float>(), 1.0f);
    EXPECT_GE(leaf.buffer_size(), 30u);
  }
  EXPECT_EQ(zone.live(), 0u);
}

TEST_F(Op, ScratchGrowsAndIsShared) {
  const auto s = mx::default_stream(mx::Device::cpu);
  const auto a = scratch(s, 1000), b = scratch(s, 500);
  EXPECT_EQ(a->data(), b->data());
  // Other tests may have left a large one.
  const auto c = scratch(s, a->size() + 1);
  EXPECT_GT(c->size(), a->size());
  EXPECT_NE(a->data(), c->data());
}

}  // namespace
}  // namespace hearth::ops
