#include "hearth/models/model_section.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/io/gguf_names.h"
#include "hearth/models/decoder.h"
#include "hearth/models/family.h"
#include "hearth/models/write_config.h"

namespace hearth::models {
namespace {

ModelSection section(const std::string& arch) {
  ModelSection s;
  s.arch = arch, s.dim = 32, s.layers = 2, s.heads = 4;
  return s;
}

// Names and shapes of all parameters.
std::vector<std::pair<std::string, mx::Shape>> list(const DecoderConfig& c) {
  std::vector<std::pair<std::string, mx::Shape>> out;
  const Decoder model(c);
  for (const auto* p : model.parameters().all()) {
    out.emplace_back(p->name, p->shape);
  }
  return out;
}

TEST(ModelSection, EveryArchitectureReadsBackFromItsOwnConfig) {
  for (const char* arch : {"llama", "qwen2", "qwen3", "gpt2"}) {
    const auto made = new_model(section(arch), 100, 64);
    const auto read = parse_config(config_json(made), "config.json");
    EXPECT_EQ(list(made), list(read)) << arch;
    EXPECT_EQ(made.max_length, read.max_length);
    EXPECT_EQ(made.act, read.act);
  }
}

// io's table of GGUF names says them too, which knows no families.
TEST(ModelSection, FamiliesAreCalledTheSameWhereAGgufIsRead) {
  for (const io::GgufArchitecture& a : io::gguf_architectures()) {
    const Family* family = family_named(a.model_type);
    ASSERT_NE(family, nullptr) << a.name;
    EXPECT_EQ(family->architecture, a.class_name) << a.name;
  }
}

TEST(ModelSection, VocabularyIsRoundedUpToFullTiles) {
  EXPECT_EQ(new_model(section("llama"), 100, 64).vocab, 128);
}

TEST(ModelSection, AGateKeepsThePlainMlpsParameterCount) {
  auto s = section("llama");
  s.ffn = 96;
  s.gate = nn::GateConfig{.unit = "gelu", .value = 0.5};
  const auto gated = new_model(s, 100, 64);
  EXPECT_EQ(3 * gated.ffn, 2 * 96);
  EXPECT_EQ(gated.family, "hearth");
  const auto read = parse_config(config_json(gated), "config.json");
  ASSERT_TRUE(read.gate);
  EXPECT_EQ(read.gate->unit, "gelu");
  EXPECT_EQ(read.gate->value, 0.5);
}

TEST(ModelSection, AFullGateIsAStockModel) {
  auto s = section("llama");
  s.gate =
      nn::GateConfig{.unit = "silu", .value = 1, .equal_parameters = false};
  EXPECT_EQ(new_model(s, 100, 64).family, "llama");
}

TEST(ModelSection, RefusesHeadsThatDoNotDivide) {
  auto s = section("llama");
  s.heads = 5;
  EXPECT_THROW(new_model(s, 100, 64), UsageError);
}

TEST(ModelSection, RefusesAVocabularySmallerThanTheTokenizers) {
  auto s = section("llama");
  s.vocab = 90;
  EXPECT_THROW(new_model(s, 100, 64), UsageError);
}

}  // namespace
}  // namespace hearth::models
