// Models written as a Hugging Face folder and read again.
#include "hearth/models/save.h"

#include <cstring>
#include <filesystem>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/models/load.h"
#include "hearth/models/model_section.h"
#include "hearth/models/write_config.h"
#include "hearth/nn/init.h"

namespace hearth::models {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path =
      fs::temp_directory_path() / ("hearth-save-" + std::to_string(getpid()));
  ~Folder() { fs::remove_all(path); }
};

void expect_round_trip(const ModelSection& section, mx::Dtype dtype) {
  const Folder folder;
  const auto config = new_model(section, 100, 64);
  const Decoder made(config);
  for (nn::Weight* p : made.parameters().all()) nn::initialize(*p, 9, 2);
  io::HfFolderOptions options;
  options.shard_bytes = 20000;
  io::write_hf_folder(
      folder.path.string(), config_json(config), Json::object(),
      tensors_to_write(made, dtype), options
  );
  EXPECT_TRUE(fs::exists(folder.path / "model.safetensors.index.json"));
  const auto read = load_model(
      folder.path.string(), {.use = Use::training, .compute = mx::float32}
  );
  EXPECT_TRUE(read.unused.empty());
  const auto a = made.parameters().all();
  const auto b = read.decoder->parameters().all();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i]->name, b[i]->name);
    ASSERT_EQ(a[i]->shape, b[i]->shape) << a[i]->name;
    const auto want = mx::astype(mx::astype(a[i]->value(), dtype), mx::float32);
    EXPECT_TRUE(mx::array_equal(want, b[i]->value()).item<bool>())
        << a[i]->name;
  }
}

ModelSection section(const std::string& arch) {
  ModelSection s;
  s.arch = arch, s.dim = 32, s.layers = 2, s.heads = 4;
  return s;
}

TEST(Save, LlamaComesBack) {
  expect_round_trip(section("llama"), mx::float32);
  expect_round_trip(section("llama"), mx::bfloat16);
}

TEST(Save, AnUntiedHeadComesBack) {
  auto s = section("qwen3");
  s.tie = false;
  expect_round_trip(s, mx::float32);
}

TEST(Save, GptTwosTransposedWeightsComeBack) {
  expect_round_trip(section("gpt2"), mx::float32);
}

TEST(Save, AGateWithWhatItLearntComesBack) {
  auto s = section("llama");
  s.gate = nn::GateConfig{
      .unit = "swish", .alpha = "learnable", .value = 0.3, .learn_beta = true
  };
  expect_round_trip(s, mx::float32);
}

TEST(Save, AScheduledGateComesBackWhereItStands) {
  auto s = section("llama");
  s.gate = nn::GateConfig{.alpha = "linear", .steps = 10, .step = 4};
  const auto config = new_model(s, 100, 64);
  EXPECT_EQ(config_json(config).at("gate").at("step"), 4);
}

TEST(Save, RefusesWhatIsOnlyPacked) {
  const auto model = load_model(
      HEARTH_SOURCE_DIR "/tests/golden/models/llama2", {.compute = mx::float32}
  );
  EXPECT_THROW(tensors_to_write(*model.decoder, mx::float32), UsageError);
}

}  // namespace
}  // namespace hearth::models
