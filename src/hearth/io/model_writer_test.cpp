// What is written is read back, whole or not at all. Whether other programs
// read it is tools/check_model_files.py's question.
#include <csignal>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "hearth/io/hf_folder_writer.h"
#include "hearth/io/model_bytes_test.h"
#include "hearth/io/peft_adapter.h"
#include "hearth/io/safetensors.h"

namespace hearth::io {
namespace {

namespace fs = std::filesystem;
using test::refusal;

const std::string kBytes(64, '\7');

TensorToWrite floats(const std::string& name, std::vector<std::int64_t> shape) {
  TensorToWrite out{name, TensorType::f32, std::move(shape), {}};
  const auto size = bytes_of(out);
  return tensor_of(
      name, out.type, out.shape, test::as_bytes(kBytes).first(size)
  );
}

std::size_t entries(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator())
  );
}

TEST(SafetensorsWriter, OrderAndBytesDoNotDependOnTheCaller) {
  const TempFolder folder;
  const auto b =
      tensor_of("b", TensorType::bf16, {3}, test::as_bytes(kBytes).first(6));
  const auto weird = floats("quote\" é", {2});
  write_safetensors(folder / "1", {b, floats("z", {1}), weird});
  write_safetensors(folder / "2", {weird, floats("z", {1}), b});
  EXPECT_EQ(read_all(folder / "1"), read_all(folder / "2"));
  const auto file = SafetensorsFile::open(folder / "1");
  ASSERT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->tensors()[1].name, "quote\" é");
  EXPECT_EQ(file->tensors()[1].offset % 64, 0u);
  EXPECT_EQ(file->metadata().at("format"), "pt");
}

TEST(SafetensorsWriter, LeavesNothingBehindWhenItFails) {
  const TempFolder folder;
  const auto short_one =
      tensor_of("a", TensorType::f32, {4}, test::as_bytes(kBytes).first(8));
  const auto message = [&](std::vector<TensorToWrite> tensors) {
    return refusal([&] { write_safetensors(folder / "x", tensors); });
  };
  EXPECT_NE(
      message({short_one}).find("must have 16 bytes, got 8"), std::string::npos
  );
  EXPECT_NE(
      message({floats("a", {1}), floats("a", {1})}).find("must stand once"),
      std::string::npos
  );
  const auto quantized = tensor_of("q", TensorType::q8_0, {32}, {});
  EXPECT_NE(message({quantized}).find("cannot hold q8_0"), std::string::npos);
  EXPECT_EQ(entries(folder.path()), 0u);
}

// Files may not grow past a size: to the writer that is a disk that is full.
TEST(HfFolderWriter, AFullDiskLeavesNothingBehind) {
  const TempFolder folder;
  const std::string large(1 << 20, 'x');
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit low = before;
  low.rlim_cur = 1 << 16;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const std::string message = refusal([&] {
    write_hf_folder(
        folder / "out", Json::object(), Json::object(),
        {tensor_of("a", TensorType::u8, {1 << 20}, test::as_bytes(large))}
    );
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("cannot write"), message.npos) << message;
  EXPECT_EQ(entries(folder.path()), 0u);
}

TEST(HfFolderWriter, ShardsAreReadAsOneModel) {
  const TempFolder folder;
  folder.write("tokenizer.json", "{}");
  folder.write("pytorch_model.bin", "not carried");
  const Json config = {{"model_type", "llama"}, {"hidden_size", 4}};
  HfFolderOptions options;
  options.shard_bytes = 24;
  options.carry_from = folder.path();
  const std::string out = folder / "out";
  write_hf_folder(
      out, config, {{"eos_token_id", 2}},
      {floats("b", {4}), floats("a", {4}), floats("c", {1}), floats("d", {1})},
      options
  );
  EXPECT_TRUE(fs::exists(out + "/model-00002-of-00002.safetensors"));
  EXPECT_TRUE(fs::exists(out + "/tokenizer.json"));
  EXPECT_FALSE(fs::exists(out + "/pytorch_model.bin"));
  const auto model = open_model(out);
  EXPECT_EQ(model->config(), config);
  EXPECT_EQ(model->generation_config()["eos_token_id"], 2);
  ASSERT_EQ(model->tensors().size(), 4u);
  EXPECT_EQ(model->tensors()[0].name, "a");
  EXPECT_EQ(model->data(model->tensors()[0]).bytes[0], std::byte{7});
  const Json index = read_json_file(out + "/model.safetensors.index.json");
  EXPECT_EQ(index["metadata"]["total_size"], 40);
}

TEST(HfFolderWriter, ReplacesModelsWithForceAndNothingElse) {
  const TempFolder folder;
  const std::string out = folder / "out";
  const auto write = [&](const std::string& path, bool force, int hidden) {
    HfFolderOptions options;
    options.force = force;
    return refusal([&] {
      write_hf_folder(
          path, {{"hidden_size", hidden}}, Json::object(), {floats("a", {1})},
          options
      );
    });
  };
  EXPECT_EQ(write(out + "/", false, 1), "");
  EXPECT_NE(write(out, false, 2).find("is there already"), std::string::npos);
  EXPECT_EQ(write(out, true, 3), "");
  EXPECT_EQ(open_model(out)->config()["hidden_size"], 3);
  fs::create_directory(folder / "precious");
  folder.write("precious/letter.txt", "dear");
  EXPECT_NE(
      write(folder / "precious", true, 4).find("is not replaced"),
      std::string::npos
  );
  EXPECT_EQ(entries(folder.path()), 2u);
}

PeftConfig small_config() {
  PeftConfig config;
  config.rank = 2;
  config.alpha = 6;
  config.targets = {"q_proj", "v_proj"};
  config.rank_pattern = {{"0.v_proj", 4}};
  config.alpha_pattern = {{"v_proj", 8}};
  config.modules_to_save = {"lm_head"};
  return config;
}

TEST(PeftAdapter, RoundTripKeepsModulesAndScales) {
  const TempFolder folder;
  const PeftConfig config = small_config();
  write_peft_adapter(
      folder / "out", config,
      {{"m.0.q_proj", floats("", {2, 3}), floats("", {4, 2}), {}},
       {"m.0.v_proj", floats("", {4, 3}), floats("", {4, 4}), {}}},
      {floats("lm_head.weight", {2, 2})}
  );
  const PeftAdapter adapter = PeftAdapter::open(folder / "out");
  ASSERT_EQ(adapter.modules().size(), 2u);
  EXPECT_EQ(adapter.modules()[1].name, "m.0.v_proj");
  EXPECT_EQ(adapter.config().scale_of("m.0.q_proj"), 3);
  EXPECT_EQ(adapter.config().scale_of("m.0.v_proj"), 2);
  ASSERT_EQ(adapter.saved().size(), 1u);
  EXPECT_EQ(adapter.saved()[0].name, "lm_head.weight");
  EXPECT_EQ(adapter.data(adapter.saved()[0]).bytes.size(), 16u);
}

TEST(PeftAdapter, RefusesWhatItDoesNotUnderstandByName) {
  const Json good = to_json(small_config());
  const auto message = [&](const char* key, const Json& value) {
    Json config = good;
    config[key] = value;
    return refusal([&] { parse_peft_config(config, "adapter_config.json"); });
  };
  EXPECT_EQ(message("megatron_config", nullptr), "");
  EXPECT_EQ(message("new_option", false), "");
  const std::pair<std::string, const char*> cases[] = {
      {message("new_option", true), "\"new_option\" is set"},
      {message("lora_bias", true), "\"lora_bias\" is set"},
      {message("peft_type", "LOHA"), "must be LORA"},
      {message("bias", "all"), "bias must be none"},
      {message("init_lora_weights", "pissa"), "\"pissa\" changes the base"},
      {message("r", 0), "r must be a rank"},
      {message("r", "8"), "r must be a rank"},
      {message("rank_pattern", {{"layers.*.q", 4}}), "patterns are not known"},
      {message("target_modules", {1}), "must be a list of names"},
  };
  for (const auto& [said, phrase] : cases) {
    EXPECT_NE(said.find(phrase), said.npos) << phrase << ": " << said;
  }
}

TEST(PeftAdapter, RefusesTensorsThatDoNotFit) {
  const TempFolder folder;
  folder.write("adapter_config.json", to_json_text(to_json(small_config())));
  const std::string m = "base_model.model.m.0.q_proj.";
  const auto message = [&](std::vector<TensorToWrite> tensors) {
    write_safetensors(folder / "adapter_model.safetensors", tensors);
    return refusal([&] { PeftAdapter::open(folder.path()); });
  };
  const auto a = floats(m + "lora_A.weight", {2, 3});
  const auto b = floats(m + "lora_B.weight", {4, 2});
  EXPECT_EQ(message({a, b}), "");
  const std::pair<std::string, const char*> cases[] = {
      {message({a}), "both lora_A and lora_B"},
      {message({a, floats(m + "lora_B.weight", {4, 3})}), "lora_B [out, 2]"},
      {message({a, b, floats(m + "lora_magnitude_vector", {4})}), "use_dora"},
      {message({a, b, floats(m + "lora_C.weight", {4})}), "not known"},
      {message({a, b, floats("base_model.model.norm.weight", {4})}),
       "neither a LoRA matrix nor in modules_to_save"},
      {message({a, b, floats("m.weight", {4})}), "must begin with"},
      {message({}), "no LoRA matrices"},
      {message(
           {floats("base_model.model.k.lora_A.weight", {2, 1}),
            floats("base_model.model.k.lora_B.weight", {1, 2})}
       ),
       "not in target_modules"},
  };
  for (const auto& [said, phrase] : cases) {
    EXPECT_NE(said.find(phrase), said.npos) << phrase << ": " << said;
  }
}

}  // namespace
}  // namespace hearth::io
