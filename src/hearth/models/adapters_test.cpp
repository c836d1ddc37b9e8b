// Adapters against PEFT's own results (tests/golden/adapters), and over a
// quantised base.
#include "hearth/models/adapters.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"
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

mx::array logits_of(const Decoder& decoder, const mx::array& ids) {
  nn::Pass pass;
  pass.dtype = mx::float32;
  pass.quantized = ops::QuantCompute::kExact;
  pass.positions = plain_positions(ids.shape(0), ids.shape(1));
  pass.length = ids.shape(1);
  return decoder.logits(decoder.hidden(ids, pass), pass);
}

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
  for (nn::Parameter* p : set.trainable()) {
    RandomStream random{RandomKey(5).fold(p->name)};
    for (std::size_t i = 0; i < p->value.size(); ++i) {
      p->value.data<float>()[i] = static_cast<float>(0.3 * random.normal());
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
    nn::Parameter& p = a[i]->weight();
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
    p.packed.reset();
    auto copy = mx::contiguous(wide);
    copy.eval();
    b[i]->weight().set(copy);
    b[i]->weight().packed.reset();
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

TEST(QuantizedBase, LoraIsThatOfTheWidenedWeights) {
  expect_quantized_base_agrees(false);
}

TEST(QuantizedBase, DoraIsThatOfTheWidenedWeights) {
  expect_quantized_base_agrees(true);
}

}  // namespace
}  // namespace hearth::models
