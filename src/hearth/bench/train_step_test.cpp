#include "hearth/bench/train_step.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/bench/ablate.h"
#include "hearth/bench/torch_peer.h"

namespace hearth::bench {
namespace {

StepShape small() {
  return {
      .dim = 64,
      .layers = 2,
      .heads = 2,
      .kv_heads = 1,
      .ffn = 96,
      .vocab = 128,
      .qkv_bias = true,
      .rows = 2,
      .length = 16
  };
}

TEST(TrainStep, CountsTheArithmeticOfTheIssue) {
  StepShape s = small();
  s.kv_heads = 2, s.qkv_bias = false;
  // Embedding as head, q k v o, three of the MLP, five norms.
  const double parameters = 128 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 96) + 5 * 64;
  const double flops = (6 * parameters + 12 * 2 * 64 * 16) * 32;
  EXPECT_DOUBLE_EQ(step_flops(s), flops);
}

TEST(TrainStep, AFrozenWeightCountsFour) {
  StepShape s = small();
  const double all = step_flops(s);
  s.lora_rank = 4;
  EXPECT_LT(step_flops(s), 0.85 * all);
  EXPECT_GT(step_flops(s), 0.6 * all);
}

TEST(TrainStep, RunsWholeAndWithAdapters) {
  for (const int rank : {0, 4}) {
    StepShape s = small();
    s.lora_rank = rank;
    TrainStep step(s, 1);
    step();
    Row row;
    step.profile(row);
    EXPECT_GT(row.overhead, 0);
    EXPECT_LT(row.overhead, 1);
    ASSERT_GT(row.ops.size(), 5u);
    EXPECT_GE(row.ops[0].ms, row.ops[1].ms);
    const auto head =
        std::ranges::find(row.ops, "FusedHeadLoss", &OpTime::name);
    EXPECT_EQ(head == row.ops.end() ? 0 : head->count, 1);
  }
}

TEST(TorchVariants, AreEightAndFoundByRegex) {
  EXPECT_EQ(torch_variants(".").size(), 8u);
  const auto found = torch_variants("bf16-compile-tuned");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].bf16 && found[0].compile && found[0].tuned);
  EXPECT_THROW(torch_variants("int8"), UsageError);
  EXPECT_THROW(torch_variants("("), UsageError);
}

// Every switch must change what is run.
TEST(Ablations, EachSwitchesItsOwnThing) {
  const train::Recipe base = ablation_recipe();
  const auto changed = [&](const char* what) {
    for (const auto& a : ablations(base)) {
      if (a.what != what) continue;
      train::Recipe r = base;
      a.change(r);
      return std::pair(r, a.objective);
    }
    throw Error("no such ablation");
  };
  EXPECT_EQ(changed("precision").first.train.precision, "fp32");
  EXPECT_EQ(changed("checkpointing").first.train.checkpointing, "all");
  EXPECT_FALSE(changed("fused attention").second.fused_attention);
  EXPECT_TRUE(changed("fused attention").second.fused_head);
  EXPECT_FALSE(changed("fused head").second.fused_head);
  EXPECT_EQ(changed("packing").first.data.arrange, "pad");
  EXPECT_EQ(changed("prefetch").first.data.workers, 0);
  EXPECT_EQ(changed("evaluation interval").first.train.eval_interval, 4);
}

}  // namespace
}  // namespace hearth::bench
