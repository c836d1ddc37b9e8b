#include "hearth/train/recipe/recipe_paths.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/train/recipe/recipe_changes.h"

namespace hearth::train {
namespace {

namespace fs = std::filesystem;

Recipe read(const std::string& yaml) {
  Recipe recipe;
  ConfigReader(recipe).apply(parse_yaml(yaml, "recipe"));
  return recipe;
}

std::string here(const char* path) {
  return (fs::current_path() / path).string();
}

TEST(RecipePaths, AreTheSameFromAnyFolder) {
  Recipe r = read(
      "model: {adapter: runs/x/adapter}\n"
      "data: {train: [a.jsonl, ./b/*.txt, /c.txt], valid: held.jsonl, "
      "tokenizer: ../tok, template: chat.jinja, cache: c}\n"
      "run: {dir: runs/a}\n"
  );
  r = with_absolute_paths(r);
  EXPECT_EQ(r.data.train.items[0].scalar, here("a.jsonl"));
  EXPECT_EQ(r.data.train.items[1].scalar, here("b/*.txt"));
  EXPECT_EQ(r.data.train.items[2].scalar, "/c.txt");
  EXPECT_EQ(r.data.valid, here("held.jsonl"));
  EXPECT_EQ(
      r.data.tokenizer.scalar, (fs::current_path().parent_path() / "tok")
  );
  EXPECT_EQ(r.data.chat_template, here("chat.jinja"));
  EXPECT_EQ(r.data.cache, here("c"));
  EXPECT_EQ(r.model.adapter, here("runs/x/adapter"));
  EXPECT_EQ(r.run.dir, "runs/a");
  const Recipe mix = with_absolute_paths(read("data: {mix: ['a.txt:0.5']}"));
  EXPECT_EQ(mix.data.mix[0], here("a.txt:0.5"));
}

TEST(RecipePaths, WhatIsNoPathStays) {
  const Recipe r = with_absolute_paths(read(
      "model: {from: hf:org/name}\n"
      "data: {valid: 5%, tokenizer: {train: {vocab: 300}}, template: "
      "chatml}\n"
  ));
  EXPECT_EQ(r.model.from, "hf:org/name");
  EXPECT_EQ(r.data.valid, "5%");
  EXPECT_EQ(r.data.tokenizer.kind, YamlNode::Kind::kMap);
  EXPECT_EQ(r.data.chat_template, "chatml");
  EXPECT_EQ(r.data.cache, "");
  EXPECT_EQ(r.model.adapter, "");
}

TEST(RecipePaths, AModelThatIsThereIsFoundFromAnywhere) {
  const TempFolder folder;
  const fs::path run = fs::path(folder.path()) / "run";
  fs::create_directories(run / "model");
  write_file_atomically((run / "config.yaml").string(), "{}");
  const std::string word = fs::relative(run).string() + "@12";
  Recipe r;
  r.model.from = word;
  EXPECT_EQ(with_absolute_paths(r).model.from, run.string() + "@12");
  r.model.from = "org/name";
  EXPECT_EQ(with_absolute_paths(r).model.from, "org/name");
}

TEST(RecipePaths, TwoWaysToWriteAPathAreNoChange) {
  const Recipe before = read("data: {valid: " + here("held.jsonl") + "}");
  EXPECT_TRUE(
      recipe_changes(before, read("data: {valid: ./held.jsonl}")).empty()
  );
  EXPECT_EQ(
      recipe_changes(before, read("data: {valid: other.jsonl}")).size(), 1u
  );
}

}  // namespace
}  // namespace hearth::train
