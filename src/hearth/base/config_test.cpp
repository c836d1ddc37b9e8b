#include "hearth/base/config.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth {
namespace {

struct Lora {
  int rank = 16;
  std::vector<std::string> targets{"q_proj"};
  void fields(FieldVisitor& v) {
    v("rank", rank, "rank of the update", at_least(1));
    v("targets", targets, "layers it is added to");
  }
};
struct Optim {
  std::string name = "adamw";
  float lr = 3e-4f;
  std::optional<double> clip;
  void fields(FieldVisitor& v) {
    v("name", name, "optimiser", one_of({"adamw", "lion"}));
    v("lr", lr, "peak learning rate", positive());
    v("clip", clip, "global norm", positive());
  }
};
struct Recipe {
  int steps = 100;
  bool pack = false;
  std::string note;
  Optim optim;
  std::optional<Lora> lora;
  void fields(FieldVisitor& v) {
    v("steps", steps, "optimiser steps", required(at_least(1)));
    v("pack", pack, "pack documents");
    v("note", note, "free text");
    v("optim", optim, "optimiser");
    v("lora", lora, "low-rank adapter");
  }
};

std::string error_of(const std::string& yaml) {
  Recipe r;
  try {
    ConfigReader reader(r);
    reader.apply(parse_yaml(yaml, "r.yaml"));
    reader.require_all(parse_yaml(yaml, "r.yaml"));
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

TEST(Config, ReadsARecipeAndOverrides) {
  Recipe r;
  ConfigReader reader(r);
  reader.apply(parse_yaml(
      "steps: 1_000\npack: true\noptim: {name: lion, lr: 1e-3}\n"
      "lora: {targets: [a, b]}\n",
      "r.yaml"
  ));
  reader.apply_override("optim.clip=0.5");
  reader.apply_override("lora.rank=8");
  EXPECT_EQ(r.steps, 1000);
  EXPECT_TRUE(r.pack);
  EXPECT_EQ(r.optim.name, "lion");
  EXPECT_FLOAT_EQ(r.optim.lr, 1e-3f);
  EXPECT_EQ(r.optim.clip, 0.5);
  ASSERT_TRUE(r.lora);
  EXPECT_EQ(r.lora->rank, 8);
  EXPECT_EQ(r.lora->targets, (std::vector<std::string>{"a", "b"}));
}

TEST(Config, AbsentSectionsStayOffAndAnOverrideTurnsThemOn) {
  Recipe r;
  ConfigReader reader(r);
  reader.apply(parse_yaml("steps: 5", "r.yaml"));
  EXPECT_FALSE(r.lora);
  reader.apply_override("lora.rank=4");
  ASSERT_TRUE(r.lora);
  EXPECT_EQ(r.lora->rank, 4);
}

TEST(Config, NullSwitchesASectionOff) {
  Recipe r;
  ConfigReader reader(r);
  reader.apply(parse_yaml("steps: 5\nlora: {rank: 4}\noptim:\n", "r.yaml"));
  ASSERT_TRUE(r.lora);
  reader.apply_override("lora=null");
  EXPECT_FALSE(r.lora);
  EXPECT_EQ(reader.dump().find("lora."), std::string::npos);
  // On again, it starts from the defaults and not from what was switched off.
  reader.apply_override("lora.targets=[a]");
  ASSERT_TRUE(r.lora);
  EXPECT_EQ(r.lora->rank, Recipe().lora.emplace().rank);
  EXPECT_EQ(reader.origin("lora.rank"), "default");
  EXPECT_EQ(reader.origin("lora.targets"), "command line");
  Recipe other;
  ConfigReader(other).apply(parse_yaml("lora:\nsteps: 2", "r.yaml"));
  EXPECT_FALSE(other.lora) << "a section without keys is off";
  try {
    reader.apply_override("lora=off");
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_STREQ(
        e.what(),
        "command line: lora must be a section with keys, or null to switch it "
        "off, got 'off'"
    );
  }
}

TEST(Config, AnOverrideReachesIntoAFieldThatIsATree) {
  struct Tree {
    YamlNode tokenizer;
    void fields(FieldVisitor& v) { v("tokenizer", tokenizer, "a tree"); }
  } t;
  ConfigReader reader(t);
  reader.apply(parse_yaml("tokenizer: {train: {vocab: 8, x: 1}}", "r.yaml"));
  reader.apply_override("tokenizer.train.vocab=9");
  reader.apply_override("tokenizer.train.new.key=[a]");
  EXPECT_EQ(
      detail::show_node(t.tokenizer),
      "{train: {vocab: 9, x: 1, new: {key: [a]}}}"
  );
  reader.apply_override("tokenizer=file.json");
  reader.apply_override("tokenizer.train.vocab=3");
  EXPECT_EQ(detail::show_node(t.tokenizer), "{train: {vocab: 3}}");
}

TEST(Config, TheDumpSaysWhereValuesCameFrom) {
  Recipe r;
  ConfigReader reader(r);
  reader.apply(parse_yaml("steps: 7\n\noptim:\n  lr: 2.0e-5\n", "r.yaml"));
  reader.apply_override("pack=true");
  const std::string dump = reader.dump();
  const auto has = [&](const char* left, const char* origin) {
    const auto at = dump.find(left);
    ASSERT_NE(at, std::string::npos) << dump;
    const std::string line = dump.substr(at, dump.find('\n', at) - at);
    EXPECT_NE(line.find(std::string("# ") + origin), std::string::npos) << line;
  };
  has("steps = 7", "r.yaml:1");
  has("optim.lr = 2.0e-05", "r.yaml:4");
  has("pack = true", "command line");
  has("optim.name = adamw", "default");
  EXPECT_EQ(dump.find("lora."), std::string::npos);
}

TEST(Config, WhatItWritesReadsBackTheSame) {
  Recipe a;
  ConfigReader first(a);
  first.apply(parse_yaml(
      "{steps: 3, note: 'a: \"b\" #c', optim: {lr: 1.0e-4}, lora: {rank: 2}}",
      "r.yaml"
  ));
  const std::string text = first.to_yaml();
  Recipe b;
  ConfigReader second(b);
  second.apply(parse_yaml(text, "again"));
  EXPECT_EQ(second.to_yaml(), text);
  EXPECT_EQ(b.note, "a: \"b\" #c");
  EXPECT_EQ(b.optim.lr, 1e-4f);
  ASSERT_TRUE(b.lora);
}

TEST(Config, ErrorsAreOneLineWithFileLineAndKey) {
  EXPECT_EQ(
      error_of("steps: 1\noptm: {}\n"),
      "r.yaml:2: there is no key 'optm'; did you mean 'optim'?"
  );
  EXPECT_EQ(
      error_of("steps: 1\noptim:\n  lrr: 1\n"),
      "r.yaml:3: there is no key 'optim.lrr'; did you mean 'optim.lr'?"
  );
  EXPECT_EQ(
      error_of("steps: 1\nlr: 1\n"),
      "r.yaml:2: there is no key 'lr'; did you mean 'optim.lr'?"
  );
  EXPECT_EQ(
      error_of("steps: 0"), "r.yaml:1: steps must be at least 1, got '0'"
  );
  EXPECT_EQ(
      error_of("steps: 1.5"), "r.yaml:1: steps must be an integer, got '1.5'"
  );
  EXPECT_EQ(
      error_of("steps: 99999999999"),
      "r.yaml:1: steps must be from -2147483648 to 2147483647, got "
      "'99999999999'"
  );
  EXPECT_EQ(
      error_of("{steps: 1, optim: {name: adamv}}"),
      "r.yaml:1: optim.name must be one of adamw, lion, got 'adamv'; did you "
      "mean 'adamw'?"
  );
  EXPECT_EQ(
      error_of("{steps: 1, pack: yes}"),
      "r.yaml:1: pack must be true or false, got 'yes'"
  );
  EXPECT_EQ(
      error_of("{steps: 1, lora: {targets: q}}"),
      "r.yaml:1: lora.targets must be a list, got 'q'"
  );
  EXPECT_EQ(error_of("pack: true"), "r.yaml:1: key 'steps' must be given");
  EXPECT_EQ(
      error_of("{steps: 1, optim: 3}"),
      "r.yaml:1: optim must be a section with keys, got '3'"
  );
}

TEST(Config, OverridesAreTold) {
  EXPECT_TRUE(ConfigReader::is_override("optim.lr=3e-4"));
  EXPECT_FALSE(ConfigReader::is_override("file.yaml"));
  EXPECT_FALSE(ConfigReader::is_override("--flag=1"));
  EXPECT_FALSE(ConfigReader::is_override("=1"));
  Recipe r;
  ConfigReader reader(r);
  EXPECT_THROW(reader.apply_override("steps"), UsageError);
  try {
    reader.apply_override("optim.lrr=1");
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_STREQ(
        e.what(),
        "command line: there is no key 'optim.lrr'; did you mean 'optim.lr'?"
    );
  }
}

TEST(Config, HelpListsEveryFieldOfAbsentSectionsToo) {
  Recipe r;
  const std::string help = ConfigReader(r).help();
  for (const char* path : {"steps", "optim.lr", "lora.rank", "lora.targets"}) {
    EXPECT_NE(help.find(path), std::string::npos) << path;
  }
}

}  // namespace
}  // namespace hearth
