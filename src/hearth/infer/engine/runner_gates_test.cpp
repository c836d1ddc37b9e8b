// Models that no golden has, on the runner without a graph against the graph:
// partial gates, a plain feed-forward part under Llama's names, GPT-2 with
// adapters.
#include <gtest/gtest.h>

#include "hearth/base/random.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/infer/cpu/runner.h"
#include "hearth/infer/engine/golden_models_test.h"
#include "hearth/models/adapters.h"
#include "hearth/models/model_section.h"
#include "hearth/nn/init.h"

namespace hearth::infer {
namespace {

namespace fs = std::filesystem;

models::DecoderConfig tiny() {
  models::ModelSection s;
  s.dim = 32, s.layers = 2, s.heads = 4, s.kv_heads = 2, s.ffn = 48;
  return models::new_model(s, 64, 64);
}

// Weights large enough for what is between them to matter.
models::LoadedModel made(const models::DecoderConfig& c, mx::Dtype compute) {
  models::LoadedModel model;
  model.compute = compute;
  model.decoder = std::make_unique<models::Decoder>(c);
  for (nn::Weight* p : model.decoder->parameters().all()) {
    nn::initialize(*p, 9, 2);
    constexpr float kGain = 10;
    if (p->shape.size() < 2) continue;
    auto wide = mx::multiply(p->value(), mx::array(kGain));
    if (compute == mx::bfloat16) wide = mx::astype(wide, mx::bfloat16);
    wide.eval();
    p->set(wide);
  }
  models::prepare(*model.decoder, compute, models::Use::inference);
  return model;
}

void expect_as_the_graph(
    const models::LoadedModel& model,
    float room,
    const std::string& what
) {
  const Ids more{4, 8, 2};
  const auto want = by_decoder(model, prompt(), more);
  const auto runner = make_runner(model);
  ASSERT_NE(dynamic_cast<CpuRunner*>(runner.get()), nullptr) << what;
  const auto id = runner->open();
  const Ids ids = prompt();
  EXPECT_LT(
      largest_error(runner->step({{{id, ids, LogitsOf::last}}}), want[0]), room
  ) << what;
  for (std::size_t i = 0; i < more.size(); ++i) {
    const auto got = runner->step({{{id, {&more[i], 1}, LogitsOf::last}}});
    EXPECT_LT(largest_error(got, want[i + 1]), room) << what;
  }
}

const nn::GateConfig kGates[] = {
    {.unit = "glu", .value = 0.4},
    {.unit = "gtu", .value = 0.7},
    {.unit = "reglu", .value = 0.2},
    {.unit = "gelu", .value = 0},
    {.unit = "swish", .value = 0.6, .beta = 1.7},
    {.unit = "mish", .alpha = "learnable", .value = 0.3},
    {.unit = "swish",
     .alpha = "learnable",
     .value = 0.3,
     .beta = 2.5,
     .learn_beta = true},
    {.unit = "silu", .alpha = "linear", .steps = 10, .step = 4},
    {.unit = "silu", .alpha = "cosine", .low = 0.1, .steps = 10, .step = 7},
};

TEST(PartialGates, AreTheGraphs) {
  for (const auto& gate : kGates) {
    auto config = tiny();
    config.gate = gate;
    const std::string what = gate.unit + " " + gate.alpha;
    expect_as_the_graph(made(config, mx::float32), 1e-4f, what);
    expect_as_the_graph(made(config, mx::bfloat16), 0.15f, what);
  }
}

TEST(PartialGates, ChangeWhatComesOut) {
  const auto plain =
      by_decoder(made(tiny(), mx::float32), prompt(), {}).front();
  for (const auto& gate : kGates) {
    auto config = tiny();
    config.gate = gate;
    const auto got =
        by_decoder(made(config, mx::float32), prompt(), {}).front();
    EXPECT_GT(largest_error(got, plain), 0.01f) << gate.unit;
  }
}

// Their alpha is a mean over all tokens that run together, so that a row would
// depend on what is beside it.
TEST(PartialGates, WithAnAlphaOfTheirInputAreLeftToTheGraph) {
  for (const char* alpha : {"entropy", "confidence"}) {
    auto config = tiny();
    config.gate = nn::GateConfig{.unit = "glu", .alpha = alpha};
    const auto model = made(config, mx::float32);
    const auto runner = make_runner(model);
    EXPECT_EQ(dynamic_cast<CpuRunner*>(runner.get()), nullptr) << alpha;
    const Ids ids = prompt();
    const auto got = runner->step({{{runner->open(), ids, LogitsOf::last}}});
    EXPECT_LT(largest_error(got, by_decoder(model, ids, {})[0]), 1e-4f);
  }
}

TEST(PlainMlp, UnderLlamasNamesIsTheGraphs) {
  auto config = tiny();
  config.gated = false, config.mlp_bias = true;
  config.act = ops::Activation::relu;
  expect_as_the_graph(made(config, mx::float32), 1e-4f, "relu");
}

// An adapter of every projection of GPT-2, with noise in it.
void write_adapter(const std::string& folder) {
  auto model = load_golden("gpt2", mx::float32);
  nn::LoraConfig config;
  config.rank = 4;
  config.targets = {"c_attn", "c_proj", "c_fc"};
  models::attach_adapters(*model.decoder, *model.source, config);
  for (nn::Weight* p : model.decoder->parameters().trainable()) {
    RandomStream random{RandomKey(5).fold(p->name)};
    for (std::size_t i = 0; i < p->value().size(); ++i) {
      p->value().data<float>()[i] = static_cast<float>(0.2 * random.normal());
    }
  }
  models::save_adapter(*model.decoder, golden_folder("gpt2"), folder, true);
}

TEST(AdaptersOfGpt2, AreTheGraphsBesideTheBase) {
  const TempFolder out;
  write_adapter(out.path());
  const auto base = load_golden("gpt2", mx::float32);
  auto adapted = load_golden("gpt2", mx::float32);
  models::load_adapter(adapted, out.path());
  const Ids ids = prompt();
  const auto plain = by_decoder(base, ids, {})[0];
  const auto want = by_decoder(adapted, ids, {})[0];
  EXPECT_GT(largest_error(plain, want), 0.01f);
  const auto runner = make_runner(base, {.adapters = {out.path()}});
  ASSERT_NE(dynamic_cast<CpuRunner*>(runner.get()), nullptr);
  const auto got = runner->step(
      {{{runner->open(0), ids, LogitsOf::last},
        {runner->open(), ids, LogitsOf::last}}}
  );
  EXPECT_LT(largest_error(got.first(want.size()), want), 2e-4f);
  EXPECT_LT(largest_error(got.last(plain.size()), plain), 2e-4f);
}

}  // namespace
}  // namespace hearth::infer
