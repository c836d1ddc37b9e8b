// What the planner says of a pass beside what MLX's allocator holds after one.
#include "hearth/train/plan/pass_memory.h"

#include <gtest/gtest.h>

#include "hearth/models/load.h"
#include "hearth/nn/init.h"
#include "hearth/ops/execution.h"
#include "hearth/train/objectives/language_model.h"
#include "hearth/train/objectives/preference.h"
#include "hearth/train/step/accumulator.h"

namespace hearth::train {
namespace {

constexpr int kRows = 4, kLength = 128;

models::DecoderConfig llama() {
  models::DecoderConfig c;
  c.family = "llama";
  c.vocab = 512, c.dim = 256, c.layers = 3, c.heads = 4, c.kv_heads = 2;
  c.head_dim = 64, c.ffn = 704, c.max_length = kLength;
  c.tie = true;
  c.windows = {0, 0, 0};
  c.rope = ops::RopeConfig{.dims = 64};
  return c;
}

MemoryQuestion question(const models::DecoderConfig& model) {
  MemoryQuestion q;
  q.model = model;
  q.step_tokens = std::int64_t{kRows} * kLength;
  q.lengths = {kLength};
  q.rows = kRows;
  q.table = &ops::current_execution().kernels;
  return q;
}

data::Batch zeros() {
  data::Batch b;
  b.rows = kRows, b.length = kLength;
  const std::size_t tokens = std::size_t{kRows} * kLength;
  b.ids.assign(tokens, 1), b.targets.assign(tokens, 1);
  b.segments.assign(tokens, 1), b.weights.assign(tokens, 1.0f);
  for (std::size_t i = 0; i < tokens; ++i) {
    b.positions.push_back(static_cast<std::int32_t>(i % kLength));
  }
  return b;
}

std::unique_ptr<models::Decoder> real_model(
    const MemoryQuestion& q,
    models::Use use
) {
  auto model = std::make_unique<models::Decoder>(q.model);
  for (nn::Weight* p : model->parameters().all()) {
    nn::initialize(*p, 3, q.model.layers);
    p->trainable = use == models::Use::training;
  }
  models::prepare(*model, q.bf16 ? mx::bfloat16 : mx::float32, use);
  return model;
}

// What the allocator has taken for a training step over a real model, in use
// or kept, and no more of.
std::size_t held_by(
    const MemoryQuestion& q,
    const Objective& objective = LanguageModel()
) {
  const auto model = real_model(q, models::Use::training);
  model->set_checkpointing(q.checkpointed);
  AccumulateOptions options;
  options.compute = q.bf16 ? mx::bfloat16 : mx::float32;
  options.eval_interval = static_cast<int>(q.eval_interval);
  auto rows = static_cast<std::uint32_t>(q.rows);
  mx::clear_cache();
  const std::size_t before = mx::get_active_memory();
  const Gradients g = accumulate(*model, objective, zeros(), rows, options);
  return mx::get_active_memory() - before + mx::get_cache_memory();
}

std::size_t predicted(const MemoryQuestion& q) {
  const auto together = static_cast<std::size_t>(q.eval_interval);
  const PlannedPass pass{
      .rows = std::vector<std::int64_t>(together, q.rows), .length = kLength
  };
  BufferPool pool;
  PassMemory memory(q);
  memory.walk(pool, pass);
  EXPECT_EQ(memory.remark(), "");
  return pool.resident();
}

// A run never takes more. It takes up to 6 % less where the machine is busy:
// then more has ended, and been given back, when the next array is asked for.
void expect_near(
    const MemoryQuestion& q,
    const char* what,
    const Objective& objective = LanguageModel()
) {
  const auto held = static_cast<double>(held_by(q, objective));
  const auto said = static_cast<double>(predicted(q));
  EXPECT_GT(said, 0.99 * held) << what << said / held;
  EXPECT_LT(said, 1.08 * held) << what << said / held;
}

TEST(PassMemory, SaysWhatARealPassHolds) {
  MemoryQuestion q = question(llama());
  expect_near(q, "llama");
  q.bf16 = false;
  expect_near(q, "in float32");
  q.checkpointed = {true, true, true};
  expect_near(q, "computed again, in float32");
  q.bf16 = true;
  expect_near(q, "computed again");
  q.checkpointed = {true, false, true};
  expect_near(q, "every second computed again");
}

TEST(PassMemory, FollowsTheBlock) {
  MemoryQuestion q = question(llama());
  q.model.qk_norm = true;
  expect_near(q, "norms of queries and keys");
  q.model.sandwich_norms = true;
  expect_near(q, "norms after each half");
  q = question(llama());
  q.model.gated = false;
  expect_near(q, "an MLP of two matrices");
  q.model.family = "gpt2", q.model.gpt2_layout = true, q.model.rope.reset();
  q.model.kv_heads = q.model.heads;
  expect_near(q, "learnt positions, q, k and v in one matrix");
}

TEST(PassMemory, FollowsTheObjective) {
  MemoryQuestion q = question(llama());
  const auto plain = predicted(q);
  const auto with = [&](const char* name, double neftune) {
    Recipe recipe;
    recipe.train.objective = name;
    recipe.train.objectives.get<LanguageModelConfig>().neftune = neftune;
    q.objective.recipe = std::make_shared<const Recipe>(recipe);
  };
  with("dpo", 0);
  const Preference preference(0.1f, real_model(q, models::Use::inference));
  expect_near(q, "pairs, and the start beside it", preference);
  EXPECT_NE(predicted(q), plain);
  with("lm", 0);
  EXPECT_EQ(predicted(q), plain);
  with("lm", 5);
  EXPECT_GT(predicted(q), plain);
}

TEST(PassMemory, MicroBatchesThatAreEvaluatedTogetherAreOneGraph) {
  MemoryQuestion q = question(llama());
  q.rows = 1;
  const auto alone = predicted(q);
  q.eval_interval = kRows;
  expect_near(q, "four together");
  EXPECT_GT(predicted(q), alone);
}

// The most that an op asks for is what the run has to hold of it.
TEST(PassMemory, SaysTheScratchOfARealPass) {
  const auto scratch_of = [](const MemoryQuestion& q) {
    BufferPool pool;
    return PassMemory(q)
        .walk(pool, {.rows = {kRows}, .length = kLength})
        .scratch;
  };
  MemoryQuestion q = question(llama());
  q.threads = ops::current_execution().pool.size();
  q.model.vocab = 8192;  // more than any test before has asked for
  held_by(q);
  const auto stream = mx::default_stream(mx::Device::cpu);
  EXPECT_EQ(ops::scratch(stream, 0)->size(), scratch_of(q));
  const std::size_t before = scratch_of(q);
  q.threads += 3;
  EXPECT_GT(scratch_of(q), before);
}

TEST(PassMemory, IsTheSameEachTime) {
  MemoryQuestion q = question(llama());
  q.checkpointed = {true, false, true};
  const std::size_t once = predicted(q);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(predicted(q), once);
  // A model that no machine holds.
  q.model.dim = 1 << 16, q.model.ffn = 1 << 18;
  q.model.heads = q.model.kv_heads = 256, q.model.head_dim = 256;
  q.model.rope->dims = 256;
  EXPECT_GT(predicted(q), once * 100);
}

}  // namespace
}  // namespace hearth::train
