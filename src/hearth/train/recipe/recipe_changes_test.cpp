#include "hearth/train/recipe/recipe_changes.h"

#include <set>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::train {
namespace {

std::string refusal(const Recipe& before, const Recipe& now) {
  try {
    check_resumable(before, now);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

TEST(RecipeChanges, AreNamedWithBothValues) {
  Recipe before, now;
  EXPECT_TRUE(recipe_changes(before, now).empty());
  now.run.dir = "elsewhere";
  EXPECT_TRUE(recipe_changes(before, now).empty());
  now.optim.lr = 0.5;
  now.lora.emplace().rank = 3;
  const auto changes = recipe_changes(before, now);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].key, "optim.lr");
  EXPECT_EQ(changes[0].now, "0.5");
  EXPECT_EQ(changes[1].key, "lora.rank");
  EXPECT_EQ(changes[1].before, "off");
  EXPECT_EQ(changes[1].now, "3");
}

TEST(RecipeChanges, HowARunGoesOnMayChange) {
  Recipe before, now;
  now.train.steps = 7, now.optim.lr = 1, now.train.health.z = 3;
  now.train.micro_batch_size = 2;
  now.data.workers = 3;
  EXPECT_EQ(refusal(before, now), "");
}

TEST(RecipeChanges, WhatARunIsMayNot) {
  const auto refused = [](auto change) {
    Recipe before, now;
    change(now);
    return refusal(before, now);
  };
  const auto names = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(names(
      refused([](Recipe& r) { r.optim.name = "lion"; }),
      "optim.name cannot change in a run that has begun: it is adamw, got lion"
  ));
  EXPECT_TRUE(names(refused([](Recipe& r) { r.model.dim = 64; }), "model.dim"));
  EXPECT_TRUE(names(refused([](Recipe& r) { r.run.seed = 9; }), "run.seed"));
  EXPECT_TRUE(names(refused([](Recipe& r) { r.lora.emplace(); }), "lora."));
  EXPECT_TRUE(
      names(refused([](Recipe& r) { r.data.length = 77; }), "data.length")
  );
  EXPECT_TRUE(names(
      refused([](Recipe& r) {
        r.train.micro_batch_size = 3, r.train.gradient_accumulation_steps = 2;
      }),
      "must stay 16384 tokens"
  ));
}

// A field says itself whether it may change; what may is this and no more, as
// docs/train.md has it.
TEST(RecipeChanges, TheseMayAndNoOther) {
  const std::set<std::string> want = {
      // How long, and how often what is done.
      "train.steps", "train.epochs", "train.eval_every", "train.eval_tokens",
      "train.early_stop", "train.save_every", "train.keep",
      "train.health.enabled", "train.health.window", "train.health.least",
      "train.health.z", "train.health.in_a_row", "train.health.roll_backs",
      "train.health.lr_factor",
      // How an update is computed; its tokens stay the same.
      "train.micro_batch_size", "train.gradient_accumulation_steps",
      "train.precision", "train.checkpointing", "train.packed",
      "train.eval_interval", "train.memory", "train.dynamic_batch",
      "run.threads",
      // What is minimised, as far as no saved number depends on it.
      "train.label_smoothing", "train.z_loss", "train.neftune",
      "train.dpo_beta", "lora.dropout",
      // How the optimiser moves, as far as its state stays the same.
      "optim.lr", "optim.schedule", "optim.warmup", "optim.decay_fraction",
      "optim.min_lr", "optim.weight_decay", "optim.clip", "optim.betas",
      "optim.eps", "optim.decay_embeddings", "optim.no_decay",
      "optim.muon.momentum", "optim.muon.nesterov", "optim.muon.steps",
      "optim.muon.rms", "optim.muon.precision", "optim.adafactor.decay_rate",
      "optim.adafactor.clip", "optim.adafactor.scale_by_size",
      // What training does not read.
      "coreml.enumerate_shapes", "coreml.mlprogram", "coreml.compute_units",
      "hardware.profile",
      // Where things lie. The loader compares what is in the data, the trainer
      // what is in a base that it goes on reading.
      "model.from", "model.adapter", "data.train", "data.mix", "data.tokenizer",
      "data.cache", "data.workers", "data.prefetch"
  };
  Recipe recipe;
  FieldVisitor v;
  recipe.fields(v);
  std::set<std::string> got;
  for (const auto& field : v.fields()) {
    if (field->constraint.may_change) got.insert(field->path);
  }
  EXPECT_EQ(got, want);
}

// Sections of what is to come change what a run makes.
TEST(RecipeChanges, WhatIsNotBuiltYetMayNotChange) {
  Recipe before, now;
  before.quant.emplace(), now.quant.emplace().weight_bits = 4;
  EXPECT_NE(refusal(before, now).find("quant.weight_bits"), std::string::npos);
  now = before;
  now.distill.emplace();
  EXPECT_NE(refusal(before, now).find("distill.teacher"), std::string::npos);
  now = before;
  now.rfai.emplace();
  EXPECT_NE(refusal(before, now).find("rfai."), std::string::npos);
}

}  // namespace
}  // namespace hearth::train
