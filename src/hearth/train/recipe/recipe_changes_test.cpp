#include "hearth/train/recipe/recipe_changes.h"

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

// A key of the list that no recipe has would refuse nothing and allow nothing.
TEST(RecipeChanges, EveryKeyOfTheListIsThere) {
  Recipe recipe;
  recipe.lora.emplace();
  FieldVisitor v;
  recipe.fields(v);
  for (const auto& key : resumable_keys()) {
    const bool found =
        std::any_of(v.fields().begin(), v.fields().end(), [&](const auto& f) {
          return key.ends_with('.') ? f->path.starts_with(key) : f->path == key;
        });
    EXPECT_TRUE(found) << key;
  }
}

}  // namespace
}  // namespace hearth::train
