#include "hearth/train/plan/planner.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/io/model_bytes_test.h"
#include "hearth/models/decoder.h"
#include "hearth/models/load.h"
#include "hearth/train/loop/session.h"
#include "hearth/train/plan/buffer_pool.h"
#include "hearth/train/plan/step_time.h"

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
  const auto c = p.take(1 << 20);
  EXPECT_EQ(p.resident() >> 20, 3u);
  p.drop(a), p.drop(b), p.drop(c);
  // All three serve again; another size does not.
  for (int i = 0; i < 3; ++i) p.take(1 << 20);
  EXPECT_EQ(p.resident() >> 20, 3u);
  p.take(1 << 19);
  EXPECT_GT(p.resident(), std::size_t{3} << 20);
  EXPECT_EQ(p.live_peak(), p.resident());
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

TEST(MemoryModel, LengthsTakeWhatTheLargestTakes) {
  Recipe r = small_recipe();
  r.data.length = 512;
  r.train.micro_batch_size = 2;
  const auto one = plan_of(r, 0).memory.activations;
  r.data.arrange = "pad";
  EXPECT_EQ(plan_of(r, 0).memory.activations, one);
  r.data.arrange = "auto";
  r.train.seq_lengths = {128, 256, 512};
  EXPECT_EQ(plan_of(r, 0).memory.activations, one);
  // A micro-batch of 384 has 768 tokens in place of 1,024.
  r.train.seq_lengths = {384, 512};
  r.train.tokens_per_step = 3072;
  EXPECT_EQ(plan_of(r, 0).memory.activations, one);
}

TEST(MemoryModel, MicroBatchesThatAreEvaluatedTogetherTakeMore) {
  Recipe r = small_recipe();
  r.train.micro_batch_size = 2;
  const auto alone = plan_of(r, 0).memory.activations;
  r.train.eval_interval = 8;
  const auto together = plan_of(r, 0).memory.activations;
  EXPECT_GT(together, alone);
  EXPECT_LT(together, 2 * alone);
}

// A model of zeros as llama.cpp would have it: in float32, or in Q8_0, where 34
// bytes hold 32 weights.
std::string zero_gguf(const TempFolder& folder, bool quantized) {
  constexpr std::uint32_t dim = 256, ffn = 512, layers = 2, vocab = 8192;
  io::test::GgufMaker m;
  m.text("general.architecture", "llama");
  m.u32("llama.block_count", layers);
  m.u32("llama.context_length", 512);
  m.u32("llama.embedding_length", dim);
  m.u32("llama.feed_forward_length", ffn);
  m.u32("llama.attention.head_count", 4);
  m.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  const auto matrix = [&](const std::string& name, std::uint64_t out,
                          std::uint64_t in) {
    constexpr std::uint32_t kF32 = 0, kQ8 = 8;
    const std::uint32_t type = quantized ? kQ8 : kF32;
    m.tensor(name + ".weight", {in, out}, type, m.data.size());
    const std::uint64_t bytes = quantized ? out * in / 32 * 34 : out * in * 4;
    m.data.resize((m.data.size() + bytes + 31) / 32 * 32);
  };
  const auto norm = [&](const std::string& name) {
    m.floats(name + ".weight", {dim}, std::vector<float>(dim, 1));
  };
  matrix("token_embd", vocab, dim);
  norm("output_norm");
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    norm(at + "attn_norm");
    norm(at + "ffn_norm");
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
      matrix(at + name, dim, dim);
    }
    matrix(at + "ffn_gate", ffn, dim);
    matrix(at + "ffn_up", ffn, dim);
    matrix(at + "ffn_down", dim, ffn);
  }
  const std::string name = quantized ? "q8.gguf" : "f32.gguf";
  return folder.write(name, m.bytes());
}

// What a frozen base takes is what loading it takes, whatever form its matrices
// are held in.
TEST(MemoryModel, AFrozenBaseIsPlannedAsItIsHeld) {
  mx::set_default_device(mx::Device::cpu);
  const TempFolder folder;
  const std::string dense = zero_gguf(folder, false);
  const std::string quantized = zero_gguf(folder, true);
  for (const auto& [from, bits] : std::vector<std::pair<std::string, int>>{
           {quantized, 0}, {dense, 0}, {dense, 4}, {dense, 8}
       }) {
    SCOPED_TRACE(from + " " + std::to_string(bits));
    Recipe r = small_recipe();
    r.model = {};
    r.model.from = from;
    r.data.length = 32;
    r.train.micro_batch_size = 1;
    r.lora.emplace();
    r.lora->rank = 1;
    r.lora->targets = {"q_proj"};
    r.lora->quantize_base = bits;
    const Plan plan = plan_of(r, 0);
    // The loss packs a quantised head for itself, in both orders.
    const bool rounded = from == quantized || bits != 0;
    constexpr std::size_t kHead = std::size_t{8192} * 256 * 2;
    EXPECT_EQ(plan.memory.scratch > 2 * kHead, rounded);
    models::LoadOptions options;
    options.use = models::Use::frozen_base;
    options.compute = mx::bfloat16;
    options.quantize = base_format(r);
    const auto model = models::load_model(from, options);
    // Adapters and alignment are a little more.
    const auto held = static_cast<double>(model.decoder->parameters().bytes());
    const auto planned =
        static_cast<double>(plan.memory.weights + plan.memory.packed);
    EXPECT_GT(planned, held);
    EXPECT_LT(planned, 1.05 * held + 128e3);
  }
}

// Rows that are scaled keep what was scaled, in whole micro-batches.
TEST(MemoryModel, MagnitudesKeepTheSumsTheyScale) {
  mx::set_default_device(mx::Device::cpu);
  const TempFolder folder;
  Recipe r = small_recipe();
  r.model = {};
  r.lora.emplace();
  r.lora->rank = 1;
  r.lora->targets = {"down_proj"};
  r.train.micro_batch_size = 8;
  for (const bool quantized : {false, true}) {
    r.model.from = zero_gguf(folder, quantized);
    for (const char* again : {"none", "all"}) {
      r.train.checkpointing = again;
      r.lora->dropout = 0.1;  // so that ops are not joined without magnitudes
      r.lora->dora = false;
      const auto plain = plan_of(r, 0).memory.activations;
      r.lora->dora = true;
      const auto scaled = plan_of(r, 0).memory.activations;
      // One sum a layer that is not computed again, in two bytes a number.
      const auto rows = static_cast<std::size_t>(8 * r.longest());
      const std::size_t sums = again == std::string("none") ? 2 : 1;
      EXPECT_GE(scaled, plain + sums * rows * 256 * 2) << quantized << again;
    }
  }
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

// What --resume would refuse is no advice.
TEST(Planner, AdviceToARunThatHasBegunIsWhatMayChange) {
  Recipe r = small_recipe();
  r.optim.name = "adamw";
  r.train.precision = "bf16";
  r.train.checkpointing = "all";
  r.train.packed = "all";
  PlanMachine m;
  const auto advice_at = [&](std::size_t budget) {
    m.budget = budget;
    return make_plan(r, planned_model(r), m).advice;
  };
  r.train.micro_batch_size = 1;
  const std::size_t least = plan_of(r, 0).memory.total();
  r.train.micro_batch_size = 16;
  const std::size_t less = least - (1 << 16);
  ASSERT_NE(advice_at(less).find("optim.name=adamw8bit"), std::string::npos);
  m.begun = true;
  EXPECT_EQ(advice_at(less), "");
  try {
    check_fits(make_plan(r, planned_model(r), m));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(e.hint().find("--resume"), std::string::npos) << e.hint();
  }
  EXPECT_EQ(advice_at(least), "train.micro_batch_size=1");
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
