// What makes a load slow, planted, is what is named.
#include "hearth/models/load_diagnosis.h"

#include <filesystem>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hearth/models/load.h"
#include "hearth/models/model_section.h"
#include "hearth/models/quant_target.h"
#include "hearth/models/save.h"
#include "hearth/models/write_config.h"
#include "hearth/nn/init.h"
#include "hearth/profile/process_sample.h"

namespace hearth::models {
namespace {

namespace fs = std::filesystem;

class Planted : public testing::Test {
 protected:
  static inline fs::path folder;

  static void SetUpTestSuite() {
    folder =
        fs::temp_directory_path() / ("hearth-slow-" + std::to_string(getpid()));
    ModelSection s;
    s.dim = 256, s.layers = 2, s.heads = 4;
    const auto described = new_model(s, 2000, 64);
    Decoder model(described);
    for (nn::Weight* p : model.parameters().all()) nn::initialize(*p, 9, 1);
    io::write_hf_folder(
        folder.string(), config_json(described), Json::object(),
        tensors_to_write(model, mx::bfloat16), {}
    );
  }
  static void TearDownTestSuite() { fs::remove_all(folder); }

  static Diagnosis slow_part(const LoadOptions& options) {
    const auto before = profile::sample_process();
    StartFacts f;
    f.load = load_model(folder.string(), options).report;
    f.major_faults =
        profile::sample_process().major_faults - before.major_faults;
    return diagnose(f);
  }
};

TEST_F(Planted, ADiskOfSixMegabytesASecond) {
  const auto d = slow_part({.read_mode = io::ReadMode::direct, .pace = 6e6});
  EXPECT_EQ(d.part, SlowPart::disk) << name_of(d.part);
  EXPECT_NE(d.why.find("0.01 GB/s"), std::string::npos) << d.why;
}

TEST_F(Planted, PagesThatAreNotThere) {
  const auto d = slow_part({.read_mode = io::ReadMode::mapped, .pace = 6e6});
  EXPECT_EQ(d.part, SlowPart::mapping) << name_of(d.part);
}

// Searching scales is what k-quants are slow at.
TEST_F(Planted, ASlowFormat) {
  const auto d = slow_part(
      {.quantize = parse_quant_target("q4_k"),
       .read_mode = io::ReadMode::mapped}
  );
  EXPECT_EQ(d.part, SlowPart::quantising) << name_of(d.part);
}

TEST_F(Planted, SomethingBesideTheWeights) {
  StartFacts f;
  f.load = load_model(folder.string()).report;
  f.tokenizer = f.load.seconds * 4 + 1;
  const auto d = diagnose(f);
  EXPECT_EQ(d.part, SlowPart::initialising) << name_of(d.part);
  EXPECT_NE(d.why.find("tokenizer"), std::string::npos) << d.why;
  const auto advice = [&](const char* file) {
    f.tokenizer_file = file;
    return diagnose(f).advice;
  };
  EXPECT_NE(advice("m/tokenizer.json").find("is kept"), std::string::npos);
  for (const char* file : {"m/tokenizer.model", "m.gguf", ""}) {
    EXPECT_EQ(advice(file).find("tokenizer.json"), std::string::npos) << file;
    EXPECT_NE(advice(file).find("hearth serve"), std::string::npos) << file;
  }
  f.first_token = f.tokenizer * 2;
  EXPECT_NE(diagnose(f).why.find("first token"), std::string::npos);
}

TEST_F(Planted, MemoryThatHadToBeFoundFirst) {
  StartFacts f;
  f.load = load_model(folder.string()).report;
  f.load.seconds += 2;
  f.load.times.read += 2;
  f.memory_stall = 1.5;
  const auto d = diagnose(f);
  EXPECT_EQ(d.part, SlowPart::memory_pressure) << name_of(d.part);
  f.memory_stall = 0.01;
  EXPECT_NE(diagnose(f).part, SlowPart::memory_pressure);
}

TEST(Phases, AddUpToTheWhole) {
  StartFacts f;
  f.open = 1, f.header = 2, f.tokenizer = 3, f.build = 4, f.first_token = 5;
  f.load.times = {6, 7, 8, 9, 10};
  f.load.seconds = 40;
  double sum = 0;
  for (const auto& p : phases(f)) sum += p.seconds;
  EXPECT_DOUBLE_EQ(sum, f.total());
}

TEST_F(Planted, PhasesOfALoadAddUpToIt) {
  for (const char* quant : {"none", "4"}) {
    for (const auto mode : {io::ReadMode::mapped, io::ReadMode::direct}) {
      const LoadReport r =
          load_model(
              folder.string(),
              {.quantize = parse_quant_target(quant), .read_mode = mode}
          )
              .report;
      EXPECT_GT(r.seconds, 0);
      EXPECT_NEAR(r.times.sum(), r.seconds, 1e-6);
      for (const auto* parts : {&r.shards, &r.classes}) {
        double seconds = 0;
        for (const LoadPart& part : *parts) {
          EXPECT_NEAR(part.times.sum(), part.seconds, 1e-6) << part.name;
          seconds += part.seconds;
        }
        EXPECT_LE(seconds, r.seconds);
      }
    }
  }
}

TEST(TensorClass, ByName) {
  EXPECT_EQ(
      tensor_class("model.layers.3.self_attn.q_proj.weight"), "attention"
  );
  EXPECT_EQ(tensor_class("model.layers.3.mlp.up_proj.weight"), "mlp");
  EXPECT_EQ(tensor_class("model.layers.3.input_layernorm.weight"), "norm");
  EXPECT_EQ(tensor_class("transformer.wte.weight"), "embedding");
  EXPECT_EQ(tensor_class("lm_head.weight"), "head");
}

}  // namespace
}  // namespace hearth::models
