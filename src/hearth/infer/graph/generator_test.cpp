#include "hearth/infer/graph/generator.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::infer {
namespace {

models::LoadedModel load(const std::string& name) {
  return models::load_model(
      HEARTH_SOURCE_DIR "/tests/golden/models/" + name, {.compute = mx::float32}
  );
}

std::vector<std::int32_t> prompt() {
  return {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9};
}

// Greedy by computing the whole sequence again for every token.
std::vector<std::int32_t> slow_greedy(
    const models::LoadedModel& model,
    std::vector<std::int32_t> ids,
    int tokens
) {
  std::vector<std::int32_t> out;
  for (int t = 0; t < tokens; ++t) {
    const auto n = static_cast<int>(ids.size());
    nn::Pass pass;
    pass.dtype = model.compute;
    pass.positions = models::plain_positions(1, n);
    pass.length = n;
    const auto h = model.decoder->hidden(mx::array(ids.data(), {1, n}), pass);
    auto best = mx::argmax(model.decoder->logits(h, pass), -1);
    best.eval();
    out.push_back(static_cast<int>(best.data<std::uint32_t>()[n - 1]));
    ids.push_back(out.back());
  }
  return out;
}

class GeneratorOf : public testing::TestWithParam<std::string> {};

TEST_P(GeneratorOf, StepsAgreeWithComputingEverythingAgain) {
  const auto model = load(GetParam());
  const auto want = slow_greedy(model, prompt(), 12);
  for (const int chunk : {1, 4, 512}) {
    GenerateOptions o;
    o.max_tokens = 12, o.prefill_chunk = chunk;
    const auto got = generate(model, nullptr, prompt(), o);
    EXPECT_EQ(got.ids(), want) << "chunks of " << chunk;
    EXPECT_EQ(got.finish, Finish::length);
    EXPECT_GT(got.kv_bytes, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families,
    GeneratorOf,
    testing::Values("llama3-gqa", "gpt2", "gemma3", "mistral", "qwen3"),
    [](const auto& item) {
      std::string name = item.param;
      std::ranges::replace(name, '-', '_');
      return name;
    }
);

TEST(Generator, ByteKeysAgreeAtFirst) {
  const auto model = load("llama3-gqa");
  GenerateOptions o;
  o.max_tokens = 4, o.log_probs = 0;
  const auto exact = generate(model, nullptr, prompt(), o);
  o.kv = KvType::int8;
  const auto coarse = generate(model, nullptr, prompt(), o);
  EXPECT_LT(coarse.kv_bytes, exact.kv_bytes);
  EXPECT_NEAR(coarse.tokens[0].log_prob, exact.tokens[0].log_prob, 0.02);
}

TEST(Generator, StopIdsEndItAndAreTheLastToken) {
  const auto model = load("llama3-gqa");
  const auto all = slow_greedy(model, prompt(), 12);
  GenerateOptions o;
  o.max_tokens = 12, o.stop_ids = {all[5]};
  const auto got = generate(model, nullptr, prompt(), o);
  const auto first = std::ranges::find(all, all[5]) - all.begin();
  EXPECT_EQ(got.finish, Finish::stop);
  EXPECT_EQ(got.tokens.size(), static_cast<std::size_t>(first) + 1);
}

TEST(Generator, TheCallbackSeesEachTokenAndMayEndIt) {
  const auto model = load("llama3-gqa");
  GenerateOptions o;
  o.max_tokens = 12;
  int calls = 0;
  const auto got = generate(model, nullptr, prompt(), o, [&](const auto&) {
    return ++calls < 3;
  });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(got.tokens.size(), 3u);
  EXPECT_EQ(got.finish, Finish::cancelled);
}

TEST(Generator, TheContextEndsIt) {
  const auto model = load("llama3-gqa");
  const auto context =
      static_cast<std::size_t>(model.decoder->config().max_length);
  const std::vector<std::int32_t> most(context - 2, 5);
  GenerateOptions o;
  const auto got = generate(model, nullptr, most, o);
  EXPECT_EQ(got.tokens.size(), 2u);
  EXPECT_EQ(got.finish, Finish::length);
  const std::vector<std::int32_t> all(context, 5);
  EXPECT_THROW(generate(model, nullptr, all, o), UsageError);
}

TEST(Generator, BadPromptsAndOptionsAreRefused) {
  const auto model = load("llama3-gqa");
  const int vocab = model.decoder->config().vocab;
  GenerateOptions o;
  EXPECT_THROW(generate(model, nullptr, {}, o), UsageError);
  for (const int bad : {-1, vocab}) {
    const std::vector<std::int32_t> ids{1, bad};
    EXPECT_THROW(generate(model, nullptr, ids, o), UsageError);
  }
  o.stop = {"x"};
  EXPECT_THROW(generate(model, nullptr, prompt(), o), UsageError);
  o.stop = {}, o.max_tokens = 0;
  EXPECT_THROW(generate(model, nullptr, prompt(), o), UsageError);
  o.max_tokens = 1, o.kv = KvType::bfloat16;  // the model is float32
  EXPECT_THROW(generate(model, nullptr, prompt(), o), UsageError);
}

TEST(Generator, NanWeightsAreAClearError) {
  auto model = load("llama3-gqa");
  nn::Weight* norm = model.decoder->parameters().find("model.norm.weight");
  ASSERT_NE(norm, nullptr);
  norm->set(mx::full(norm->shape, std::nanf("")));
  GenerateOptions o;
  try {
    generate(model, nullptr, prompt(), o);
    FAIL() << "NaN went through";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("must be numbers"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace hearth::infer
