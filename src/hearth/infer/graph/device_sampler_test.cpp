// What the device draws against what the host's sampler does.
#include "hearth/infer/graph/device_sampler.h"

#include <gtest/gtest.h>

#include "hearth/base/random.h"
#include "hearth/infer/sampler.h"

namespace hearth::infer {
namespace {

constexpr int kVocabulary = 300;

std::vector<float> some_logits(std::uint64_t seed) {
  RandomStream random{RandomKey(seed)};
  std::vector<float> out;
  for (int i = 0; i < kVocabulary; ++i) {
    out.push_back(static_cast<float>(3 * random.normal()));
  }
  return out;
}

// Of that many rows, each with logits and a seed of its own.
void expect_same(const SamplerOptions& options, bool ranked) {
  constexpr int kRows = 40;
  std::vector<float> all;
  std::vector<Draw> draws;
  std::vector<std::int32_t> want;
  for (int r = 0; r < kRows; ++r) {
    SamplerOptions own = options;
    own.seed = static_cast<std::uint64_t>(r) + 7;
    Sampler sampler(own);
    const auto logits = some_logits(own.seed);
    all.insert(all.end(), logits.begin(), logits.end());
    const auto draw = sampler.draw(5);
    ASSERT_TRUE(draw);
    draws.push_back(*draw);
    want.push_back(sampler.pick(logits, {}, 5));
  }
  const auto rows = mx::array(all.data(), {kRows, kVocabulary});
  auto got = draw(rows, draw_rows(draws, kRows), ranked);
  got.eval();
  for (int r = 0; r < kRows; ++r) {
    EXPECT_EQ(
        static_cast<std::int32_t>(got.data<std::uint32_t>()[r]),
        want[static_cast<std::size_t>(r)]
    ) << "row "
      << r;
  }
}

class DeviceSampler : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

TEST_F(DeviceSampler, DrawsWhatTheHostDraws) {
  expect_same({}, false);
  expect_same({.temperature = 1}, false);
  expect_same({.temperature = 0.4}, false);
  expect_same({.temperature = 1.5, .min_p = 0.2}, false);
}

TEST_F(DeviceSampler, FromTheLikeliest) {
  expect_same({.temperature = 1}, true);
  expect_same({.temperature = 1.2, .top_k = 1}, true);
  expect_same({.temperature = 1.2, .top_k = 5}, true);
  expect_same({.temperature = 1.2, .top_k = 1000}, true);
  expect_same({.temperature = 1.2, .top_p = 0.6}, true);
  expect_same({.temperature = 1.2, .top_p = 1e-9}, true);
  expect_same(
      {.temperature = 1, .top_k = 30, .top_p = 0.8, .min_p = 0.05}, true
  );
}

TEST_F(DeviceSampler, RowsThatFillAStepAndTheLargestDrawAreTokens) {
  const Draw last{.temperature = 1, .uniform = 1};
  const auto rows = mx::zeros({3, 4}, mx::float32);
  auto got = draw(rows, draw_rows({{last}}, 3), true);
  got.eval();
  EXPECT_EQ(got.data<std::uint32_t>()[0], 3u);
  EXPECT_EQ(got.data<std::uint32_t>()[1], 0u);
}

TEST_F(DeviceSampler, WhatHeedsMoreIsLeftToTheHost) {
  EXPECT_TRUE(Sampler({.temperature = 1, .top_k = 4}).draw(0));
  EXPECT_FALSE(Sampler({.typical_p = 0.5}).draw(0));
  EXPECT_FALSE(Sampler({.repeat_penalty = 1.1}).draw(0));
  EXPECT_FALSE(Sampler({.frequency_penalty = 0.1}).draw(0));
  EXPECT_FALSE(Sampler({.presence_penalty = 0.1}).draw(0));
  EXPECT_FALSE(Sampler(SamplerOptions{}, {{1, 2.0f}}).draw(0));
}

// An option that reaches the device must be in a Draw; any other must send the
// request to the host, also one that is added after this was written.
TEST_F(DeviceSampler, NoOptionIsPassedOver) {
  const SamplerOptions plain{.temperature = 1};
  for (const SamplingField& field : sampling_fields()) {
    SamplerOptions options = plain;
    // Another value than the default, in the range of every option.
    field.set(options, field.whole() ? 3 : 0.5);
    ASSERT_NE(field.get(options), field.get({})) << field.name;
    const auto draw = Sampler(options).draw(0);
    EXPECT_EQ(draw.has_value(), field.on_device) << field.name;
    if (draw) {
      EXPECT_NE(*draw, *Sampler(plain).draw(0)) << field.name;
    }
  }
}

TEST_F(DeviceSampler, SortsOnlyForWhatDrawsFromTheLikeliest) {
  EXPECT_FALSE(Draw{}.ranked());
  EXPECT_FALSE((Draw{.temperature = 1, .min_p = 0.5}).ranked());
  EXPECT_FALSE((Draw{.top_k = 4, .top_p = 0.5}).ranked()) << "nothing is drawn";
  EXPECT_TRUE((Draw{.temperature = 1, .top_k = 4}).ranked());
  EXPECT_TRUE((Draw{.temperature = 1, .top_p = 0.5}).ranked());
}

}  // namespace
}  // namespace hearth::infer
