// Models that cannot be right are refused in one line that names the file and
// what is wrong in it.
#include "hearth/models/load.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/models/family.h"
#include "hearth/models/model_section.h"
#include "hearth/models/save.h"
#include "hearth/models/write_config.h"
#include "hearth/nn/init.h"

namespace hearth::models {
namespace {

namespace fs = std::filesystem;

class BadModel : public testing::Test {
 protected:
  fs::path folder =
      fs::temp_directory_path() / ("hearth-bad-" + std::to_string(getpid()));
  Json config;
  std::unique_ptr<Decoder> model;

  void SetUp() override {
    ModelSection s;
    s.dim = 32, s.layers = 1, s.heads = 4;
    const auto described = new_model(s, 100, 64);
    config = config_json(described);
    model = std::make_unique<Decoder>(described);
    for (nn::Weight* p : model->parameters().all()) {
      nn::initialize(*p, 9, 1);
    }
  }
  void TearDown() override { fs::remove_all(folder); }

  // Writes the model without the tensor of that name, and loads it.
  std::string complaint(const std::string& without = {}) {
    auto tensors = tensors_to_write(*model, mx::float32);
    std::erase_if(tensors, [&](const auto& t) { return t.name == without; });
    io::write_hf_folder(
        folder.string(), config, Json::object(), std::move(tensors),
        {.force = true}
    );
    return complaint_of_folder();
  }
  std::string complaint_of_folder() {
    try {
      load_model(folder.string());
    } catch (const Error& e) {
      return e.what();
    }
    return {};
  }
  void expect_names(
      const std::string& text,
      const std::vector<std::string>& parts
  ) {
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_NE(text.find(folder.string()), std::string::npos) << text;
    for (const auto& part : parts) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
};

TEST_F(BadModel, AsItIsItLoads) {
  EXPECT_EQ(complaint(), "");
}

TEST_F(BadModel, AMissingTensor) {
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  expect_names(complaint(name), {name, "missing"});
}

TEST_F(BadModel, AWrongShape) {
  config["intermediate_size"] = 64;
  expect_names(complaint(), {"model.layers.0.mlp.", "64"});
}

TEST_F(BadModel, WeightsThatAreNotFinite) {
  const std::string name = "model.layers.0.self_attn.v_proj.weight";
  for (const float bad :
       {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    model->parameters().find(name)->value().data<float>()[700] = bad;
    expect_names(complaint(), {name, "finite"});
  }
}

TEST_F(BadModel, AnUnknownArchitectureListsTheKnown) {
  config["model_type"] = "mamba";
  config["architectures"] = {"MambaForCausalLM"};
  expect_names(complaint(), {"config.json", "mamba", "llama", "gpt2"});
}

TEST_F(BadModel, AKeyThatChangesTheComputationAndIsNotUnderstood) {
  config["logit_scale"] = 0.5;
  expect_names(complaint(), {"config.json", "logit_scale"});
}

TEST_F(BadModel, RotarySettingsThatCannotBe) {
  const Json good = {{"rope_type", "default"}, {"rope_theta", 1e4}};
  Json linear = {{"rope_type", "linear"}, {"rope_theta", 1e4}};
  config["rope_parameters"] = linear;
  expect_names(complaint(), {"config.json", "factor"});
  linear["factor"] = 0;
  config["rope_parameters"] = linear;
  expect_names(complaint(), {"config.json", "factor must be positive"});
  config["rope_parameters"] = {{"rope_type", "llama3"}, {"factor", 8.0}};
  expect_names(complaint(), {"config.json", "low_freq_factor"});
  config["rope_parameters"] = good;
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  expect_names(complaint(), {"config.json", "rope_scaling"});
}

TEST_F(BadModel, ANegativeEpsilon) {
  config["rms_norm_eps"] = -1;
  expect_names(complaint(), {"config.json", "rms_norm_eps"});
}

TEST_F(BadModel, OddValues) {
  const struct {
    const char* key;
    Json value;
  } cases[] = {
      {"rms_norm_eps", 1e300},
      {"rms_norm_eps", 1.5},
      {"eos_token_id", "x"},
      {"eos_token_id", Json::array({1, "x"})},
      {"eos_token_id", -2},
      {"eos_token_id", 1.5},
      {"eos_token_id", UINT64_MAX},
      {"bos_token_id", true},
      {"torch_dtype", "foo"},
      {"dtype", 16},
      {"quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}},
      {"quantization_config", {{"load_in_8bit", true}}},
  };
  for (const auto& c : cases) {
    const Json good = config;
    config[c.key] = c.value;
    expect_names(complaint(), {"config.json", c.key});
    config = good;
  }
  config["eos_token_id"] = Json::array({1, -1});
  config["bos_token_id"] = nullptr;
  config["torch_dtype"] = "torch.bfloat16";
  config["quantization_config"] = Json::object();
  EXPECT_EQ(complaint(), "");
  // MLX writes the same under both names.
  config["quantization"] = {{"bits", 4}, {"group_size", 64}};
  config["quantization_config"] = config["quantization"];
  EXPECT_EQ(complaint(), "");
}

TEST_F(BadModel, MoreLayersThanTensors) {
  config["num_hidden_layers"] = 10'000'000;
  expect_names(complaint(), {"config.json", "10000000 layers"});
}

TEST_F(BadModel, TensorsThatNothingUsesAreAWarning) {
  std::string said;
  const auto before = set_log_sink([&](const LogRecord& r) { said = r.text; });
  EXPECT_EQ(complaint(), "");
  EXPECT_EQ(said, "");
  auto tensors = tensors_to_write(*model, mx::float32);
  auto again = tensors_to_write(*model, mx::float32);
  const auto take = [&](const char* from, const char* name) {
    for (auto& t : again) {
      if (t.name != from) continue;
      tensors.push_back(std::move(t));
      tensors.back().name = name;
    }
  };
  take("model.norm.weight", "model.layers.0.self_attn.rotary_emb.inv_freq");
  const auto write = [&](auto list) {
    io::write_hf_folder(
        folder.string(), config, Json::object(), std::move(list),
        {.force = true}
    );
  };
  take(
      "model.layers.0.input_layernorm.weight",
      "model.layers.1.input_layernorm.weight"
  );
  write(std::move(tensors));
  EXPECT_EQ(complaint_of_folder(), "");
  EXPECT_NE(said.find("1 of the model's tensors"), std::string::npos) << said;
  EXPECT_NE(said.find("model.layers.1.input_layernorm.weight"), said.npos);
  EXPECT_EQ(said.find("inv_freq"), said.npos) << said;
  said.clear();
  load_model(folder.string(), {.use = Use::described});
  EXPECT_EQ(said, "");
  set_log_sink(before);
}

TEST_F(BadModel, AKeyOfTheWrongType) {
  config["hidden_size"] = "wide";
  expect_names(complaint(), {"config.json", "hidden_size"});
}

TEST_F(BadModel, SizesThatDoNotFitTogether) {
  config["num_key_value_heads"] = 3;
  expect_names(complaint(), {"config.json"});
}

TEST_F(BadModel, AFolderThatIsNoModel) {
  fs::create_directories(folder);
  expect_names(complaint_of_folder(), {});
}

TEST_F(BadModel, AMissingShard) {
  io::HfFolderOptions options;
  options.shard_bytes = 10000;
  io::write_hf_folder(
      folder.string(), config, Json::object(),
      tensors_to_write(*model, mx::float32), options
  );
  fs::path gone;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") gone = entry.path();
  }
  fs::remove(gone);
  expect_names(complaint_of_folder(), {gone.filename().string()});
}

}  // namespace
}  // namespace hearth::models
