// Weights that are rounded, packed and converted while they are read are those
// that were made of the whole model, and no second copy of a tensor exists on
// the way.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/models/load.h"
#include "hearth/models/model_section.h"
#include "hearth/models/quant_target.h"
#include "hearth/models/save.h"
#include "hearth/models/write_config.h"
#include "hearth/nn/init.h"

namespace hearth::models {
namespace {

namespace fs = std::filesystem;

// A model in shards, written once for all tests here.
class QuantLoad : public testing::Test {
 protected:
  static inline fs::path folder;

  static void SetUpTestSuite() {
    folder =
        fs::temp_directory_path() / ("hearth-ql-" + std::to_string(getpid()));
    ModelSection s;
    s.dim = 256, s.layers = 2, s.heads = 4, s.ffn = 768;
    const auto described = new_model(s, 3000, 64);
    Decoder model(described);
    for (nn::Weight* p : model.parameters().all()) {
      nn::initialize(*p, 9, 1);
    }
    io::HfFolderOptions options;
    options.shard_bytes = 1 << 20;
    io::write_hf_folder(
        folder.string(), config_json(described), Json::object(),
        tensors_to_write(model, mx::bfloat16), options
    );
  }
  static void TearDownTestSuite() { fs::remove_all(folder); }

  static LoadedModel load(LoadOptions options) {
    options.slice_bytes = 64 << 10;
    return load_model(folder.string(), options);
  }
};

std::vector<std::uint8_t> bytes_of(const mx::array& a) {
  const auto* p = a.data<std::uint8_t>();
  return {p, p + a.nbytes()};
}

TEST_F(QuantLoad, IsTheSameAsRoundingTheWholeMatrix) {
  const auto plain = load({});
  for (const char* name :
       {"4", "8", "q4_k", "affine4-g64-bf16", "int8-g32-f32"}) {
    const auto format = parse_quant_target(name);
    const auto rounded = load({.quantize = format});
    int matrices = 0;
    for (const nn::Weight* p : rounded.decoder->parameters().all()) {
      if (!p->matrix) continue;
      ASSERT_TRUE(p->quantized()) << p->name;
      EXPECT_EQ(p->quantized()->format(), *format) << p->name;
      const auto whole = ops::QuantizedWeight::quantize(
          read_parameter(*plain.source, *p), *format
      );
      EXPECT_EQ(bytes_of(*p->quantized()->packed()), bytes_of(*whole.packed()))
          << name << " " << p->name;
      ++matrices;
    }
    EXPECT_GE(matrices, 14) << name;
  }
}

// As adapters are trained over them.
void expect_halves(const LoadedModel& model) {
  int held = 0;
  for (const nn::Weight* p : model.decoder->parameters().all()) {
    if (!p->matrix || p->value().size() == 0) continue;
    ASSERT_EQ(p->value().dtype(), mx::float16) << p->name;
    auto want = mx::astype(read_parameter(*model.source, *p), mx::float16);
    want.eval();
    EXPECT_EQ(bytes_of(p->value()), bytes_of(want)) << p->name;
    ++held;
  }
  EXPECT_GT(held, 0);
}

TEST_F(QuantLoad, Float16IsReadAsItIs) {
  expect_halves(load({.use = Use::frozen_base, .compute = mx::float16}));
}

TEST_F(QuantLoad, RoundingDoesNotDependOnThePrecision) {
  const auto format = parse_quant_target("4");
  LoadOptions options{.use = Use::frozen_base, .quantize = format};
  options.compute = mx::float16;
  const auto half = load(options);
  options.compute = mx::float32;
  const auto wide = load(options);
  expect_halves(half);
  for (std::size_t i = 0; i < wide.decoder->parameters().all().size(); ++i) {
    const nn::Weight& a = *half.decoder->parameters().all()[i];
    const nn::Weight& b = *wide.decoder->parameters().all()[i];
    if (!b.quantized()) continue;
    ASSERT_TRUE(a.quantized()) << a.name;
    EXPECT_EQ(
        bytes_of(*a.quantized()->packed()), bytes_of(*b.quantized()->packed())
    ) << a.name;
  }
}

TEST_F(QuantLoad, EveryWayToReadGivesTheSameBytes) {
  const auto mapped = load({.read_mode = io::ReadMode::mapped});
  EXPECT_EQ(mapped.report.how, "mapped");
  EXPECT_GT(mapped.report.shards.size(), 2u);
  for (const auto mode : {io::ReadMode::buffered, io::ReadMode::direct}) {
    const auto read = load({.read_mode = mode});
    EXPECT_GT(read.report.window, 0u);
    const auto a = mapped.decoder->parameters().all();
    const auto b = read.decoder->parameters().all();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i]->value().nbytes(), b[i]->value().nbytes()) << a[i]->name;
      EXPECT_EQ(bytes_of(a[i]->value()), bytes_of(b[i]->value())) << a[i]->name;
      ASSERT_EQ(a[i]->packed() == nullptr, b[i]->packed() == nullptr);
      if (!a[i]->packed()) continue;
      ASSERT_EQ(a[i]->packed()->bytes(), b[i]->packed()->bytes());
      EXPECT_EQ(
          std::memcmp(
              a[i]->packed()->forward(), b[i]->packed()->forward(),
              a[i]->packed()->bytes()
          ),
          0
      ) << a[i]->name;
    }
  }
}

// The largest matrix has 1.5 MB in the file. A budget that leaves half of that
// beside the finished model would be passed by any copy of it.
TEST_F(QuantLoad, HoldsNoSecondCopyOfATensor) {
  for (const char* name : {"4", "8", "none"}) {
    for (const auto mode : {io::ReadMode::mapped, io::ReadMode::direct}) {
      const LoadOptions options{
          .quantize = parse_quant_target(name), .read_mode = mode
      };
      const std::size_t before = memory_usage().total;
      std::size_t final = 0;
      {
        const auto model = load(options);
        final = memory_usage().total - before;
      }
      ASSERT_GT(final, 2u << 20);
      reset_memory_peak();
      set_memory_budget(memory_usage().total + final + (750 << 10));
      try {
        const auto model = load(options);
      } catch (const OutOfMemory& e) {
        ADD_FAILURE() << name << ": " << e.what();
      }
      EXPECT_LE(memory_usage().peak, memory_budget());
      set_memory_budget(0);
    }
  }
}

// The same model as MLX writes it: three arrays for each matrix.
class StoredLoad : public QuantLoad {
 protected:
  fs::path stored = folder.string() + "-stored";
  ops::QuantFormat format = *parse_quant_target("affine4-g64-bf16");
  std::map<std::string, ops::QuantizedArrays> arrays;

  void SetUp() override {
    const auto plain = load({});
    Json config = plain.source->config();
    config["quantization"] = {{"bits", 4}, {"group_size", 64}};
    std::vector<io::TensorToWrite> tensors;
    for (const nn::Weight* p : plain.decoder->parameters().all()) {
      if (!p->matrix) {
        tensors.push_back(
            io::copy_of(*plain.source, *plain.source->find(p->name))
        );
        continue;
      }
      const std::string layer = p->name.substr(0, p->name.rfind('.'));
      auto& made =
          arrays
              .emplace(
                  p->name, ops::QuantizedWeight::quantize(
                               read_parameter(*plain.source, *p), format
                           )
                               .arrays()
              )
              .first->second;
      const auto add = [&](const char* name, io::TensorType type,
                           const mx::array& a) {
        tensors.push_back(
            io::tensor_of(
                layer + name, type, {a.shape(0), a.shape(1)},
                std::as_bytes(std::span(a.data<std::uint8_t>(), a.nbytes()))
            )
        );
      };
      add(".weight", io::TensorType::u32, made.codes);
      add(".scales", io::TensorType::bf16, *made.scales);
      add(".biases", io::TensorType::bf16, *made.biases);
    }
    io::HfFolderOptions options;
    options.shard_bytes = 300 << 10;
    options.force = true;
    io::write_hf_folder(
        stored.string(), config, Json::object(), std::move(tensors), options
    );
  }
  void TearDown() override { fs::remove_all(stored); }

  LoadedModel load_stored(LoadOptions options) const {
    options.slice_bytes = 16 << 10;
    return load_model(stored.string(), options);
  }
};

TEST_F(StoredLoad, EveryWayToReadGivesTheFilesArraysBack) {
  for (const auto mode :
       {io::ReadMode::mapped, io::ReadMode::buffered, io::ReadMode::direct}) {
    const auto model = load_stored({.read_mode = mode});
    EXPECT_EQ(model.report.how, io::name_of(mode));
    EXPECT_EQ(model.report.window > 0, mode != io::ReadMode::mapped);
    int matrices = 0;
    for (const nn::Weight* p : model.decoder->parameters().all()) {
      if (!p->matrix) continue;
      ASSERT_TRUE(p->quantized()) << p->name;
      const auto got = p->quantized()->arrays();
      const auto& want = arrays.at(p->name);
      EXPECT_EQ(bytes_of(got.codes), bytes_of(want.codes)) << p->name;
      EXPECT_EQ(bytes_of(*got.scales), bytes_of(*want.scales)) << p->name;
      EXPECT_EQ(bytes_of(*got.biases), bytes_of(*want.biases)) << p->name;
      ++matrices;
    }
    EXPECT_GE(matrices, 14);
    std::size_t bytes = 0;
    for (const auto& t : model.source->tensors()) bytes += t.bytes;
    EXPECT_EQ(model.report.bytes, bytes);
    EXPECT_NEAR(model.report.times.sum(), model.report.seconds, 1e-6);
  }
}

TEST_F(StoredLoad, WideningGivesTheSameNumbers) {
  const auto wide =
      load_stored({.compute = mx::float32, .keep_quantized = false});
  for (const nn::Weight* p : wide.decoder->parameters().all()) {
    if (!p->matrix || p->value().size() == 0) continue;
    EXPECT_EQ(bytes_of(p->value()), bytes_of(read_parameter(*wide.source, *p)))
        << p->name;
  }
}

TEST_F(StoredLoad, Float16IsReadAsItIs) {
  expect_halves(load_stored({.use = Use::frozen_base, .compute = mx::float16}));
}

// What is waited for is seen, whatever the weights become.
TEST_F(StoredLoad, WaitingForBytesCountsAsReading) {
  for (const auto mode : {io::ReadMode::mapped, io::ReadMode::direct}) {
    const auto r = load_stored({.read_mode = mode, .pace = 1e6}).report;
    EXPECT_GT(r.times.read, 0.5 * r.seconds) << io::name_of(mode);
  }
}

TEST_F(StoredLoad, AScaleThatIsNoNumberIsRefused) {
  const auto source = io::open_model(stored.string());
  const auto* scales = source->find("model.layers.1.mlp.up_proj.scales");
  ASSERT_NE(scales, nullptr);
  {
    std::fstream file(
        scales->file, std::ios::in | std::ios::out | std::ios::binary
    );
    file.seekp(static_cast<std::streamoff>(scales->offset + 200));
    file.write("\x80\x7f", 2);  // infinity
  }
  try {
    load_stored({});
    FAIL() << "it was taken";
  } catch (const FormatError& e) {
    EXPECT_NE(std::string(e.what()).find("up_proj.scales"), std::string::npos)
        << e.what();
  }
}

TEST_F(QuantLoad, ABudgetBelowTheModelIsRefused) {
  std::size_t final = 0;
  const LoadOptions options{.quantize = parse_quant_target("4")};
  const std::size_t before = memory_usage().total;
  {
    const auto model = load(options);
    final = memory_usage().total - before;
  }
  set_memory_budget(memory_usage().total + final / 2);
  EXPECT_THROW(load(options), OutOfMemory);
  set_memory_budget(0);
  EXPECT_EQ(load(options).report.bytes, load({}).report.bytes);
}

TEST_F(QuantLoad, WhatTheFormatCannotHoldStaysDense) {
  // Rows of 172: no whole number of blocks of 32.
  ModelSection s;
  s.dim = 64, s.layers = 1, s.heads = 4, s.ffn = 172;
  const auto described = new_model(s, 100, 64);
  Decoder decoder(described);
  for (nn::Weight* p : decoder.parameters().all()) nn::initialize(*p, 9, 1);
  const fs::path odd = folder / "odd";
  io::write_hf_folder(
      odd.string(), config_json(described), Json::object(),
      tensors_to_write(decoder, mx::float32), {}
  );
  const auto model =
      load_model(odd.string(), {.quantize = parse_quant_target("4")});
  ASSERT_EQ(model.report.kept_dense.size(), 1u);
  EXPECT_EQ(model.report.kept_dense[0], "model.layers.0.mlp.down_proj.weight");
  fs::remove_all(odd);
}

TEST(QuantTarget, NamesAndWrongNames) {
  EXPECT_EQ(quant_target_name(parse_quant_target("none")), "none");
  EXPECT_EQ(quant_target_name(parse_quant_target("4")), "q4_0");
  EXPECT_EQ(quant_target_name(parse_quant_target("8")), "q8_0");
  for (const char* wrong : {"", "3", "q9", "fp8", "affine4"}) {
    EXPECT_THROW(parse_quant_target(wrong), UsageError) << wrong;
  }
}

TEST(ReadChoice, ByMemoryDiskAndPageCache) {
  using io::ReadMode;
  constexpr std::size_t kGb = std::size_t{1} << 30;
  const auto mode = [](ReadFacts f) { return choose_read(f).mode; };
  EXPECT_EQ(mode({.bytes = 1 << 20}), ReadMode::mapped);
  EXPECT_EQ(mode({.bytes = 8 * kGb, .resident = 8 * kGb}), ReadMode::mapped);
  EXPECT_EQ(mode({.bytes = 8 * kGb, .free_memory = 9 * kGb}), ReadMode::direct);
  EXPECT_EQ(
      mode(
          {.bytes = 8 * kGb,
           .free_memory = 64 * kGb,
           .disk_bytes_per_second = 3e9}
      ),
      ReadMode::direct
  );
  EXPECT_EQ(
      mode(
          {.bytes = 8 * kGb,
           .free_memory = 64 * kGb,
           .disk_bytes_per_second = 2e8}
      ),
      ReadMode::buffered
  );
}

}  // namespace
}  // namespace hearth::models
