// Adapters against PEFT's own results (tests/golden/adapters), and over a
// quantised base.
#include "hearth/models/adapters.h"

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"
#include "hearth/io/hf_folder_writer.h"
#include "hearth/io/safetensors.h"
#include "hearth/models/tensor_read.h"
#include "hearth/nn/init.h"

namespace hearth::models {
namespace {

const std::string kGolden = HEARTH_SOURCE_DIR "/tests/golden/";
const std::string kBase = kGolden + "models/llama3-gqa";

mx::array expected(const io::SafetensorsFile& file, const std::string& name) {
  const auto all = file.tensors();
  const auto t = std::ranges::find(all, name, &io::TensorInfo::name);
  if (t == all.end()) throw Error("no " + name);
  mx::Shape shape;
  for (const auto n : t->shape) shape.push_back(static_cast<int>(n));
  const auto* bytes = file.bytes(*t).data();
  if (t->type == io::TensorType::i32) {
    return mx::array(reinterpret_cast<const std::int32_t*>(bytes), shape);
  }
  return mx::array(reinterpret_cast<const float*>(bytes), shape);
}

float largest_difference(const mx::array& a, const mx::array& b) {
  auto d = mx::max(mx::abs(mx::subtract(mx::astype(a, mx::float32), b)));
  return d.item<float>();
}

mx::array logits_of(
    const Decoder& decoder,
    const mx::array& ids,
    bool adapters = true
) {
  nn::Pass pass;
  pass.adapters = adapters;
  pass.dtype = mx::float32;
  pass.quantized = ops::QuantCompute::kExact;
  pass.positions = plain_positions(ids.shape(0), ids.shape(1));
  pass.length = ids.shape(1);
  return decoder.logits(decoder.hidden(ids, pass), pass);
}

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("hearth-adapter-" + std::to_string(getpid()));
  ~Folder() { std::filesystem::remove_all(path); }
};

class Peft : public testing::TestWithParam<std::string> {
 protected:
  std::string folder = kGolden + "adapters/" + GetParam();
  std::shared_ptr<const io::SafetensorsFile> want =
      io::SafetensorsFile::open(folder + "/expected.safetensors");
};

TEST_P(Peft, LogitsAreThoseOfPeft) {
  auto model = load_model(kBase, {.compute = mx::float32});
  const auto ids = expected(*want, "input_ids");
  const auto logits = expected(*want, "logits");
  EXPECT_GT(largest_difference(logits_of(*model.decoder, ids), logits), 1e-2);
  load_adapter(model, folder);
  EXPECT_LE(largest_difference(logits_of(*model.decoder, ids), logits), 1e-4);
}

TEST_P(Peft, MergedWeightsAreThoseOfPeft) {
  auto model = load_model(kBase, {.compute = mx::float32});
  load_adapter(model, folder);
  int seen = 0;
  for (nn::Linear* linear : model.decoder->linears()) {
    const std::string name = linear->name() + ".weight";
    const auto all = want->tensors();
    const auto t =
        std::ranges::find(all, "merged." + name, &io::TensorInfo::name);
    if (t == all.end()) continue;
    ASSERT_NE(linear->lora(), nullptr) << name;
    const auto base = read_dense(
        *model.source, *model.source->find(name), linear->weight().shape, false,
        mx::float32
    );
    EXPECT_LE(
        largest_difference(
            linear->lora()->merged(base), expected(*want, t->name)
        ),
        1e-5
    ) << name;
    ++seen;
  }
  EXPECT_EQ(seen, 3);
}

bool same(const mx::array& a, const mx::array& b) {
  return mx::array_equal(a, b).item<bool>();
}

// Merged, a model computes what PEFT does; unmerged, the very same numbers as
// before, with the adapter and without it.
void expect_merges(
    LoadedModel& model,
    const mx::array& ids,
    const std::optional<mx::array>& want
) {
  const auto adapted = logits_of(*model.decoder, ids);
  const auto base = logits_of(*model.decoder, ids, false);
  EXPECT_FALSE(same(adapted, base));
  for (int round = 0; round < 2; ++round) {
    merge_adapters(model);
    merge_adapters(model);
    const auto merged = logits_of(*model.decoder, ids);
    EXPECT_LE(largest_difference(merged, want.value_or(adapted)), 1e-4);
    EXPECT_TRUE(same(merged, logits_of(*model.decoder, ids, false)));
    unmerge_adapters(model);
    unmerge_adapters(model);
    EXPECT_TRUE(same(logits_of(*model.decoder, ids), adapted));
    EXPECT_TRUE(same(logits_of(*model.decoder, ids, false), base));
  }
}

TEST_P(Peft, MergesAndUnmerges) {
  auto model = load_model(kBase, {.compute = mx::float32});
  load_adapter(model, folder);
  expect_merges(model, expected(*want, "input_ids"), expected(*want, "logits"));
}

TEST_P(Peft, WrittenAgainItIsTheSame) {
  const Folder out;
  auto model = load_model(kBase, {.compute = mx::float32});
  load_adapter(model, folder);
  save_adapter(*model.decoder, kBase, out.path.string(), false);
  auto again = load_model(kBase, {.compute = mx::float32});
  load_adapter(again, out.path.string());
  const auto ids = expected(*want, "input_ids");
  EXPECT_TRUE(
      same(logits_of(*again.decoder, ids), logits_of(*model.decoder, ids))
  );
}

INSTANTIATE_TEST_SUITE_P(
    Adapters,
    Peft,
    testing::Values("lora", "rslora", "dora", "lora-patterns"),
    [](const auto& item) {
      std::string name = item.param;
      std::ranges::replace(name, '-', '_');
      return name;
    }
);

TEST(LoadAdapter, RefusesAnAdapterOfAnotherModel) {
  auto model = load_model(kGolden + "models/gpt2", {.compute = mx::float32});
  try {
    load_adapter(model, kGolden + "adapters/lora");
    FAIL();
  } catch (const FormatError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("adapters/lora"), std::string::npos) << text;
    EXPECT_NE(text.find("down_proj"), std::string::npos) << text;
  }
}

TEST(AttachAdapters, RefusesTargetsThatNameNothing) {
  auto model = load_model(kBase, {.compute = mx::float32});
  nn::LoraConfig config;
  config.targets = {"qproj"};
  EXPECT_THROW(
      attach_adapters(*model.decoder, *model.source, config), UsageError
  );
}

void fill_with_noise(const nn::ParameterSet& set) {
  for (nn::Weight* p : set.trainable()) {
    RandomStream random{RandomKey(5).fold(p->name)};
    for (std::size_t i = 0; i < p->value().size(); ++i) {
      p->value().data<float>()[i] = static_cast<float>(0.3 * random.normal());
    }
    if (p->matrix) nn::pack(*p, mx::float32, ops::PackedOrders::forward);
  }
}

// The same noise as an adapter over quantised matrices and over what they
// stand for.
void expect_quantized_base_agrees(bool dora) {
  const std::string base_model = kGolden + "models/llama2";
  auto quantized = load_model(base_model, {.compute = mx::float32});
  auto dense = load_model(base_model, {.compute = mx::float32});
  nn::LoraConfig config;
  config.rank = 4, config.dora = dora;
  config.targets = {"q_proj", "o_proj", "gate_proj"};
  for (auto* model : {&quantized, &dense}) {
    attach_adapters(*model->decoder, *model->source, config);
  }
  fill_with_noise(quantized.decoder->parameters());
  fill_with_noise(dense.decoder->parameters());
  const auto a = quantized.decoder->linears(), b = dense.decoder->linears();
  for (std::size_t i = 0; i < a.size(); ++i) {
    nn::Weight& p = a[i]->weight();
    if (p.shape[1] % 32 != 0) continue;
    const auto base = read_dense(
        *quantized.source, *quantized.source->find(p.name), p.shape, false,
        mx::float32
    );
    const auto q = std::make_shared<const ops::QuantizedWeight>(
        ops::QuantizedWeight::quantize(
            base, ops::QuantFormat::affine(4, 32, kernels::ScaleType::kF32)
        )
    );
    const auto wide = q->dequantize(mx::float32);
    const auto norms = mx::sqrt(mx::sum(mx::square(wide), -1));
    for (nn::Linear* linear : {a[i], b[i]}) {
      if (linear->lora() != nullptr) linear->lora()->set_base_norms(norms);
    }
    p.set(q);
    auto copy = mx::contiguous(wide);
    copy.eval();
    b[i]->weight().set(copy);
    nn::pack(b[i]->weight(), mx::float32, ops::PackedOrders::forward);
  }
  const auto ids = mx::array({1, 5, 9, 2, 60, 3, 7, 8}, {2, 4}, mx::int32);
  EXPECT_LE(
      largest_difference(
          logits_of(*quantized.decoder, ids), logits_of(*dense.decoder, ids)
      ),
      1e-3
  );
}

// The golden model as an MLX-quantised folder of 8 bits.
void write_quantized(const std::string& from, const std::string& to) {
  const auto model = load_model(from, {.use = Use::described});
  Json config = model.source->config();
  config["quantization"] = {{"bits", 8}, {"group_size", 32}};
  std::vector<io::TensorToWrite> tensors;
  std::vector<std::shared_ptr<mx::array>> kept;
  const auto add = [&](const std::string& name, io::TensorType type,
                       const mx::array& value) {
    kept.push_back(std::make_shared<mx::array>(mx::contiguous(value)));
    kept.back()->eval();
    const auto& a = *kept.back();
    tensors.push_back(
        io::tensor_of(
            name, type, {a.shape().begin(), a.shape().end()},
            {static_cast<const std::byte*>(a.data<void>()), a.nbytes()}
        )
    );
  };
  for (const nn::Weight* p : model.decoder->parameters().all()) {
    const auto value = read_parameter(*model.source, *p);
    if (p->shape.size() != 2 || p->shape[1] % 32 != 0) {
      add(p->name, io::TensorType::f32, value);
      continue;
    }
    const auto parts = mx::quantize(value, 32, 8);
    const std::string layer = p->name.substr(0, p->name.rfind('.'));
    add(p->name, io::TensorType::u32, parts.at(0));
    add(layer + ".scales", io::TensorType::f32, parts.at(1));
    add(layer + ".biases", io::TensorType::f32, parts.at(2));
  }
  io::write_hf_folder(to, config, Json::object(), std::move(tensors));
}

TEST(QuantizedBase, MergesAndUnmerges) {
  const Folder base;
  write_quantized(kBase, base.path.string());
  for (const char* adapter : {"lora", "dora"}) {
    auto model = load_model(base.path.string(), {.compute = mx::float32});
    const auto matrix = [&]() -> const nn::Weight& {
      return model.decoder->linears().front()->weight();
    };
    ASSERT_TRUE(matrix().quantized()) << adapter;
    load_adapter(model, kGolden + "adapters/" + adapter);
    const auto ids = mx::array({1, 5, 9, 2, 60, 3, 7, 8}, {2, 4}, mx::int32);
    expect_merges(model, ids, {});
    EXPECT_TRUE(matrix().quantized()) << adapter;
    merge_adapters(model);
    EXPECT_FALSE(matrix().quantized()) << adapter;
  }
}

// A base that is rounded on the way in has other norms than its file.
TEST(QuantizedBase, DoraStartsFromTheNormsOfTheRoundedWeights) {
  LoadOptions options{.use = Use::frozen_base, .compute = mx::float32};
  options.quantize = ops::QuantFormat::affine(4, 32, kernels::ScaleType::kF32);
  auto model = load_model(kBase, options);
  nn::LoraConfig config;
  config.rank = 4, config.dora = true;
  attach_adapters(*model.decoder, *model.source, config);
  std::size_t rounded = 0;
  for (nn::Linear* linear : model.decoder->linears()) {
    const nn::Weight& p = linear->weight();
    if (linear->lora() == nullptr || !p.quantized()) continue;
    ++rounded;
    linear->lora()->start_magnitude();
    const auto norms_of = [](const mx::array& w) {
      return mx::sqrt(mx::sum(mx::square(w), -1));
    };
    const auto held = norms_of(p.quantized()->dequantize(mx::float32));
    const auto stored = norms_of(read_parameter(*model.source, p));
    ASSERT_GT(largest_difference(held, stored), 1e-4f) << p.name;
    const auto& magnitude = model.decoder->parameters()
                                .find(linear->name() + ".lora_magnitude_vector")
                                ->value();
    EXPECT_LT(largest_difference(held, magnitude), 1e-6f) << p.name;
  }
  EXPECT_GT(rounded, 0u);
}

TEST(QuantizedBase, LoraIsThatOfTheWidenedWeights) {
  expect_quantized_base_agrees(false);
}

TEST(QuantizedBase, DoraIsThatOfTheWidenedWeights) {
  expect_quantized_base_agrees(true);
}

}  // namespace
}  // namespace hearth::models
