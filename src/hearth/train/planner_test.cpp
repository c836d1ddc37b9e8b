#include "hearth/train/planner.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/models/decoder.h"
#include "hearth/train/buffer_pool.h"
#include "hearth/train/step_time.h"

namespace hearth::train {
namespace {

Recipe small_recipe() {
  Recipe r;
  r.model.dim = 64, r.model.layers = 2, r.model.heads = 2;
  r.model.ffn = 128, r.model.vocab = 256;
  r.data.length = 128;
  r.train.tokens_per_step = 2048;
  return r;
}

Plan plan_of(const Recipe& r, std::size_t budget) {
  PlanMachine m;
  m.budget = budget;
  return make_plan(r, planned_model(r), m);
}

TEST(BufferPool, HoldsTheMostOfEachSizeThatWasInUse) {
  BufferPool p;
  const auto a = p.take(1 << 20);
  const auto b = p.take(1 << 20);
  p.drop(a);
  p.op();
  // Still with the op that used it.
  const auto c = p.take(1 << 20);
  EXPECT_EQ(p.resident() >> 20, 3u);
  p.drop(b), p.drop(c);
  p.op(), p.op();
  // All three serve again; another size does not.
  for (int i = 0; i < 3; ++i) p.take(1 << 20);
  EXPECT_EQ(p.resident() >> 20, 3u);
  p.take(1 << 19);
  EXPECT_GT(p.resident(), std::size_t{3} << 20);
}

TEST(MemoryModel, CountsWhatTheDecoderHas) {
  const auto model = planned_model(small_recipe());
  models::Decoder decoder(model.config);
  const auto count = count_parameters(model.config, {});
  EXPECT_EQ(count.all, decoder.parameters().count());
  EXPECT_EQ(count.trained, count.all);
  nn::LoraConfig lora;
  lora.rank = 4;
  // Two targets in each of two layers, A and B of rank 4 over 64 x 64.
  EXPECT_EQ(count_parameters(model.config, lora).trained, 2u * 2 * 2 * 4 * 64);
}

TEST(MemoryModel, ActivationsGrowWithRowsAndShrinkWithCheckpointing) {
  Recipe r = small_recipe();
  r.model.layers = 8;
  const auto activations = [&](std::int64_t rows, const char* policy) {
    r.train.micro_batch_size = rows;
    r.train.checkpointing = policy;
    return plan_of(r, 0).memory.activations;
  };
  EXPECT_NEAR(
      static_cast<double>(activations(16, "none")) /
          static_cast<double>(activations(8, "none")),
      2, 0.05
  );
  EXPECT_LT(activations(16, "all"), activations(16, "none") / 2);
  EXPECT_LT(activations(16, "2"), activations(16, "none"));
  EXPECT_GT(activations(16, "2"), activations(16, "all"));
}

TEST(Planner, GivesUpRowsThenCopiesThenActivationsAsTheBudgetShrinks) {
  Recipe r = small_recipe();
  r.model.layers = 8;
  r.train.tokens_per_step = 16384;
  const Plan free = plan_of(r, 0);
  EXPECT_EQ(free.checkpointing, "none");
  EXPECT_EQ(free.rows, 64);
  Plan last = free;
  bool fewer = false, bare = false, again = false;
  for (std::size_t budget = free.memory.total(); last.fits;
       budget = budget * 98 / 100) {
    last = plan_of(r, budget);
    if (!last.fits) break;
    EXPECT_LE(last.memory.total(), budget);
    const bool kept = last.checkpointing == "none";
    fewer = fewer || (last.rows < 64 && last.packed == "all" && kept);
    bare = bare || (last.packed == "head" && kept);
    again = again || last.checkpointing == "all";
  }
  EXPECT_TRUE(fewer);
  EXPECT_TRUE(bare);
  EXPECT_TRUE(again);
}

TEST(Planner, AdviceFitsWhenItIsTaken) {
  Recipe r = small_recipe();
  r.train.micro_batch_size = 16;
  r.train.checkpointing = "none";
  r.train.packed = "all";
  const std::size_t budget = plan_of(r, 0).memory.total() - (1 << 20);
  const Plan plan = plan_of(r, budget);
  ASSERT_FALSE(plan.fits);
  EXPECT_EQ(plan.advice, "train.micro_batch_size=8");
  EXPECT_THROW(check_fits(plan), OutOfMemory);
  r.train.micro_batch_size = 8;
  EXPECT_TRUE(plan_of(r, budget).fits);
}

// A step that is pinned on both sides keeps its size.
TEST(Planner, AdviceLeavesTheUpdateAsItIs) {
  Recipe r = small_recipe();
  r.train.micro_batch_size = 16;
  r.train.gradient_accumulation_steps = 2;
  r.train.checkpointing = "none";
  r.train.packed = "all";
  const Plan whole = plan_of(r, 0);
  const Plan plan = plan_of(r, whole.memory.total() - (1 << 20));
  EXPECT_EQ(
      plan.advice,
      "train.micro_batch_size=8 train.gradient_accumulation_steps=4"
  );
  r.train.micro_batch_size = 8;
  r.train.gradient_accumulation_steps = 4;
  EXPECT_EQ(plan_of(r, 0).step_flops, whole.step_flops);
}

TEST(StepTime, TheShareOfPeakLiesBetweenMeasuredWidths) {
  const std::vector<hardware::TrainingShare> measured = {
      {"bf16", 2, 64, 0.2}, {"bf16", 2, 256, 0.6}
  };
  EXPECT_DOUBLE_EQ(training_share(measured, 32), 0.2);
  EXPECT_DOUBLE_EQ(training_share(measured, 64), 0.2);
  EXPECT_NEAR(training_share(measured, 128), 0.4, 1e-12);
  EXPECT_DOUBLE_EQ(training_share(measured, 4096), 0.6);
}

TEST(StepTime, FollowsWhatWasMeasured) {
  const Recipe r = small_recipe();
  PlanMachine m;
  m.peak_gflops = 100;
  m.training = {{"bf16", 2, 64, 0.5}};
  const Plan half = make_plan(r, planned_model(r), m);
  EXPECT_NEAR(*half.step_seconds, half.step_flops / 50e9, 1e-12);
  m.training = {{"bf16", 2, 64, 0.25}};
  const Plan quarter = make_plan(r, planned_model(r), m);
  EXPECT_NEAR(*quarter.step_seconds, 2 * *half.step_seconds, 1e-12);
}

TEST(Planner, StepTimeNeedsAMeasuredPeak) {
  const Recipe r = small_recipe();
  EXPECT_FALSE(plan_of(r, 0).step_seconds);
  PlanMachine m;
  m.peak_gflops = 100;
  const Plan plan = make_plan(r, planned_model(r), m);
  ASSERT_TRUE(plan.step_seconds);
  // Never faster than the peak.
  EXPECT_GT(*plan.step_seconds, plan.step_flops / 100e9);
}

}  // namespace
}  // namespace hearth::train
