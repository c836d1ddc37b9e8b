#include "hearth/train/recipe/recipe.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::train {
namespace {

Recipe read(const std::string& yaml) {
  Recipe r;
  ConfigReader(r).apply(parse_yaml(yaml, "r.yaml"));
  return r;
}

// The reason a recipe is refused for; empty when it is not.
std::string refusal(const std::string& yaml) {
  try {
    read(yaml).check();
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

std::string remarks(const std::string& yaml) {
  std::string all;
  const Recipe r = read(yaml);
  r.check();
  for (const auto& line : r.remarks()) all += line + "\n";
  return all;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Case {
  const char* yaml;
  const char* part;  // of the refusal or the remark
};

TEST(Recipe, MistakesAreToldWithTheirKeysBeforeAnythingRuns) {
  const Case cases[] = {
      {"train: {seq_lengths: [512, 1024], shape_probs: [0.5, 0.4]}",
       "train.shape_probs must add up to 1, got 0.9"},
      {"train: {seq_lengths: [512, 1024], shape_probs: [1.0, 0.0]}",
       "train.shape_probs must be at least"},
      {"train: {seq_lengths: [512, 1024], shape_probs: [1]}",
       "train.shape_probs must have one number for each"},
      {"train: {seq_lengths: [512, 1024], shape_guarantee: 2}",
       "train.shape_guarantee must be at least 3 for 2 lengths, got 2"},
      {"train: {shape_guarantee: 9}", "train.shape_guarantee must have"},
      {"train: {seq_lengths: [512, 512]}",
       "train.seq_lengths must name each length once"},
      {"train: {seq_lengths: [4, 512]}", "train.seq_lengths must be from 8"},
      {"train: {seq_lengths: [512, 768], tokens_per_step: 4096}",
       "train.tokens_per_step must be a multiple of each of "
       "train.seq_lengths (512, 768), got 4096"},
      {"train: {seq_lengths: [48, 64], micro_batch_size: 1, "
       "gradient_accumulation_steps: 1}",
       "train.micro_batch_size times"},
      {"{train: {seq_lengths: [512, 1024]}, data: {pack: false}}",
       "data.pack or data.arrange"},
      {"{train: {seq_lengths: [512, 1024], objective: dpo}, model: {from: x}}",
       "with train.objective dpo"},
      {"{train: {objective: dpo, tokens_per_step: 320}, data: {length: 64}, "
       "model: {from: x}}",
       "an even number of rows with train.objective dpo"},
      {"{train: {objective: dpo, neftune: 5}, model: {from: x}}",
       "train.neftune must be 0"},
      {"{train: {objective: dpo, z_loss: 0.1}, model: {from: x}}",
       "train.z_loss must be 0"},
      {"{train: {objective: dpo, label_smoothing: 0.1}, model: {from: x}}",
       "train.label_smoothing must be 0"},
      {"train: {objective: dpo}", "give model.from"},
      {"data: {length: 32768}", "train.tokens_per_step must hold one row"},
      {"train: {checkpointing: 0}", "a number from 1, got '0'"},
      {"train: {checkpointing: 99}", "at most the model's 6 layers, got 99"},
      {"train: {checkpointing: -1}", "train.checkpointing must be"},
      {"train: {memory: 0}", "train.memory must be above 0"},
      {"train: {memory: much}", "train.memory must be a size"},
      {"train: {early_stop: 3}", "train.early_stop must have a held-out split"},
      {"{train: {early_stop: 3}, data: {valid: 0%}}", "train.early_stop"},
      {"{lora: {quantize_base: 5}, model: {from: x}}",
       "lora.quantize_base must be 0, 4 or 8, got 5"},
      {"{model: {from: x, max_length: 512}, data: {length: 1024}}",
       "rows must be at most model.max_length, 512 tokens, got 1024"},
      {"quant: {enabled: true}", "not built yet"},
      {"distill: {teacher: big}", "not built yet"},
      {"coreml: {mlprogram: false}", "coreml.mlprogram must be true"},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(has(refusal(c.yaml), c.part))
        << c.yaml << "\n  " << refusal(c.yaml);
  }
  EXPECT_EQ(refusal("{}"), "");
  EXPECT_EQ(refusal("{train: {checkpointing: 6}}"), "");
  EXPECT_EQ(refusal("{train: {checkpointing: 99}, model: {from: x}}"), "")
      << "how many layers it has is not known yet";
}

TEST(Recipe, ValuesThatDoNotDoWhatTheySeemToAreRemarkedOn) {
  const Case cases[] = {
      {"{train: {tokens_per_step: 1000}, data: {length: 64}}",
       "a step has 960 tokens, not 1000: whole rows of 64"},
      {"{train: {tokens_per_step: 4096, micro_batch_size: 2, "
       "gradient_accumulation_steps: 3}, data: {length: 64}}",
       "train.tokens_per_step 4096 is not used: the pinned batch is 384"},
      {"{train: {tokens_per_step: 512, micro_batch_size: 64}, data: {length: "
       "64}}",
       "train.micro_batch_size 64 is more than the 8 rows of a step"},
      {"{train: {tokens_per_step: 512, gradient_accumulation_steps: 100}, "
       "data: {length: 64}}",
       "train.gradient_accumulation_steps 100 is more than the 8 rows of a"},
      {"{train: {steps: 5}, optim: {warmup: 5}}",
       "optim.warmup 5 is not shorter than the 5 steps"},
      {"train: {eval_every: 5}", "train.eval_every is not used"},
      {"model: {from: x, dim: 64, gate: {alpha: learnable}}",
       "model.dim, model.gate are for new models and not used"},
      {"rfai: {num_samples_per_prompt: 2}", "rfai is kept"},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(has(remarks(c.yaml), c.part))
        << c.yaml << "\n  " << remarks(c.yaml);
  }
  EXPECT_EQ(remarks("{}"), "");
  EXPECT_EQ(remarks("{train: {steps: 5}, optim: {warmup: 0.1}}"), "");
  EXPECT_EQ(remarks("{train: {eval_every: 5}, data: {valid: 2%}}"), "");
  EXPECT_EQ(remarks("model: {from: x}"), "");
}

// The YAML blocks of the guides "S2" and "S4", in our keys.
TEST(Recipe, TheBlocksOfTheGuidesAreRead) {
  const Recipe s2 = read(R"(
train:
  micro_batch_size: 4
  gradient_accumulation_steps: 8
rfai:
  num_samples_per_prompt: 2
model:
  from: Qwen2.5-7B-Instruct
  max_length: 1024
data:
  workers: 0
  prefetch: 2
)");
  s2.check();
  EXPECT_EQ(s2.step_tokens(), 4u * 8 * 1024);
  EXPECT_EQ(s2.rfai->num_samples_per_prompt, 2);
  EXPECT_EQ(s2.model.max_length, 1024);
  EXPECT_EQ(s2.data.workers, 0);
  EXPECT_EQ(s2.data.prefetch, 2);

  Recipe s4 = read(R"(
train:
  seq_lengths: [512, 1024, 2048, 4096] # M-series ANE-optimal
  shape_probs: [0.4, 0.4, 0.15, 0.05] # Production mix
  micro_batch_size: 4
quant:
  enabled: true
  start_fraction: 0.8 # Last 20% of training
  weight_bits: 8 # INT8 (ANE-optimized)
  act_bits: 16 # FP16 activations
  kv_cache_precision: fp16
coreml:
  enumerate_shapes: [512, 1024, 2048, 4096]
  mlprogram: true
  compute_units: all
)");
  EXPECT_TRUE(s4.quant->enabled);
  EXPECT_EQ(s4.quant->start_fraction, 0.8);
  EXPECT_EQ(s4.quant->weight_bits, 8);
  EXPECT_EQ(s4.quant->act_bits, 16);
  EXPECT_EQ(s4.quant->kv_cache_precision, "fp16");
  EXPECT_EQ(s4.coreml->enumerate_shapes, s4.train.seq_lengths);
  EXPECT_EQ(s4.coreml->compute_units, "all");
  EXPECT_THROW(s4.check(), UsageError) << "what is not built is refused";
  s4.quant->enabled = false;
  s4.check();
}

TEST(Recipe, SectionsOfLaterCommandsAreCarriedAndChecked) {
  Recipe r = read("coreml: {compute_units: cpu_only, enumerate_shapes: [64]}");
  Recipe again = read(ConfigReader(r).to_yaml());
  ASSERT_TRUE(again.coreml);
  EXPECT_EQ(again.coreml->compute_units, "cpu_only");
  EXPECT_FALSE(again.quant);
  for (const char* wrong :
       {"quant: {start_fraction: 2}", "quant: {weight_bits: 1}",
        "quant: {kv_cache_precision: int3}", "coreml: {compute_units: gpu}",
        "coreml: {enumerate_shapes: [0]}", "rfai: {num_samples_per_prompt: 0}",
        "distill: {temperature: 0}", "hardware: {chip: M1}"}) {
    EXPECT_NE(refusal(wrong), "") << wrong;
  }
}

}  // namespace
}  // namespace hearth::train
