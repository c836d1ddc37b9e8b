// What is written is read again as the same model; what the format cannot hold
// is refused by name.
#include "hearth/export/hf_export.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/io/hf_folder_writer.h"
#include "hearth/models/model_section.h"
#include "hearth/models/save.h"
#include "hearth/models/write_config.h"
#include "hearth/nn/init.h"

namespace hearth::exporting {
namespace {

namespace fs = std::filesystem;
namespace mx = mlx::core;

mx::array logits_of(const std::string& folder) {
  const auto m = models::load_model(folder, {.compute = mx::float32});
  nn::Pass pass;
  pass.dtype = mx::float32;
  pass.positions = models::plain_positions(1, 6);
  pass.length = 6;
  const auto ids = mx::array({1, 5, 9, 2, 60, 3}, {1, 6}, mx::int32);
  return m.decoder->logits(m.decoder->hidden(ids, pass), pass);
}

// A model of the project's own architecture with that gate.
void write_gated(const std::string& folder, const nn::GateConfig& gate) {
  models::ModelSection s;
  s.dim = 32, s.layers = 2, s.heads = 4, s.gate = gate;
  auto config = models::new_model(s, 100, 64);
  config.family = "hearth", config.gate = gate;
  models::Decoder decoder(config);
  for (nn::Weight* p : decoder.parameters().all()) {
    nn::initialize(*p, 9, 2);
  }
  io::write_hf_folder(
      folder, models::config_json(config), Json::object(),
      models::tensors_to_write(decoder, mx::float32)
  );
}

models::LoadedModel described(const std::string& folder) {
  return models::load_model(folder, {.use = models::Use::described});
}

std::string complaint(const std::string& in, const std::string& out) {
  try {
    export_hf(described(in), out);
  } catch (const UsageError& e) {
    return std::string(e.what()) + " / " + e.hint();
  }
  return {};
}

TEST(ExportHf, APartialGateIsRefusedWithTheFormatThatHoldsIt) {
  const TempFolder f;
  write_gated(f / "in", {.unit = "glu", .value = 0.5});
  const std::string text = complaint(f / "in", f / "out");
  for (const char* part : {"glu", "alpha 0.5", "--own-format", "hearth"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_FALSE(fs::exists(f / "out"));
  export_hf(described(f / "in"), f / "out", {.own_format = true});
  EXPECT_TRUE(
      mx::array_equal(logits_of(f / "in"), logits_of(f / "out")).item<bool>()
  );
}

TEST(ExportHf, OtherAlphasAreRefusedToo) {
  for (const char* alpha : {"learnable", "entropy", "confidence"}) {
    const TempFolder f;
    write_gated(f / "in", {.alpha = alpha});
    EXPECT_NE(complaint(f / "in", f / "out").find(alpha), std::string::npos);
  }
}

TEST(ExportHf, AFullGateBecomesLlama) {
  const TempFolder f;
  // Its schedule has come to alpha 1.
  write_gated(
      f / "in", {.unit = "mish", .alpha = "linear", .steps = 10, .step = 10}
  );
  export_hf(described(f / "in"), f / "out");
  const Json config = read_json_file(f / "out/config.json");
  EXPECT_EQ(config["model_type"], "llama");
  EXPECT_EQ(config["hidden_act"], "mish");
  EXPECT_FALSE(config.contains("gate"));
  EXPECT_TRUE(
      mx::array_equal(logits_of(f / "in"), logits_of(f / "out")).item<bool>()
  );
}

TEST(ExportHf, TokenizerAndTemplatesComeAlong) {
  const TempFolder f;
  write_gated(f / "in", {});
  fs::create_directories(f / "in/additional_chat_templates");
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
        "additional_chat_templates/tool_use.jinja"}) {
    write_file_atomically(f / ("in/" + std::string(name)).c_str(), name);
  }
  const auto made =
      export_hf(described(f / "in"), f / "out", {.text_path = f / "in"});
  EXPECT_EQ(made.tokenizer_files.size(), 4u);
  for (const auto& name : made.tokenizer_files) {
    EXPECT_EQ(read_text_file(f / ("out/" + name).c_str()), name);
  }
}

TEST(ExportHf, RefusesWhatFp16CannotHold) {
  const TempFolder f;
  write_gated(f / "in", {});
  auto m = models::load_model(f / "in", {.use = models::Use::training});
  m.decoder->embedding().value().data<float>()[3] = 1e5f;
  io::write_hf_folder(
      f / "wide", m.source->config(), Json::object(),
      models::tensors_to_write(*m.decoder, mx::float32)
  );
  EXPECT_THROW(
      export_hf(
          described(f / "wide"), f / "out", {.type = io::TensorType::f16}
      ),
      FormatError
  );
  EXPECT_FALSE(fs::exists(f / "out"));
}

TEST(ExportHf, ReplacesNothingUnasked) {
  const TempFolder f;
  write_gated(f / "in", {});
  export_hf(described(f / "in"), f / "out");
  EXPECT_NE(complaint(f / "in", f / "out").find("--force"), std::string::npos);
  export_hf(described(f / "in"), f / "out", {.force = true});
}

}  // namespace
}  // namespace hearth::exporting
