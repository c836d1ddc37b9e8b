#include "hearth/train/step/gradient.h"

#include <cmath>

#include <gtest/gtest.h>

#include "hearth/train/objectives/language_model.h"
#include "hearth/train/step/small_models_test.h"

namespace hearth::train {
namespace {

models::DecoderConfig tiny() {
  return small_llama(40, 64);
}

data::Batch batch() {
  data::Batch b;
  b.rows = 3, b.length = 9;
  RandomStream random{RandomKey(5)};
  for (std::uint32_t r = 0; r < b.rows; ++r) {
    for (std::uint32_t i = 0; i < b.length; ++i) {
      const bool second = i >= 5;
      b.ids.push_back(static_cast<std::int32_t>(random.below(40)));
      b.targets.push_back(static_cast<std::int32_t>(random.below(40)));
      b.segments.push_back(second ? 2 : 1);
      b.positions.push_back(static_cast<std::int32_t>(second ? i - 5 : i));
      b.weights.push_back(i % 4 == 3 ? 0.0f : 1.0f);
    }
  }
  return b;
}

double loss(models::Decoder& model, const MicroBatch& m) {
  return loss_of(model, LanguageModel(), m, mx::float32).loss_sum;
}

// The gradient along a random direction against a central difference.
void expect_gradients_hold(const models::DecoderConfig& config) {
  auto model = made_large(config);
  const auto m = make_micro_batch(batch(), 0, 3);
  const auto g = gradients_of(*model, LanguageModel(), m, mx::float32);
  EXPECT_NEAR(g.loss_sum, loss(*model, m), 1e-3);
  const auto parameters = model->parameters().trainable();
  ASSERT_EQ(g.arrays.size(), parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    nn::Weight& p = *parameters[i];
    RandomStream random{RandomKey(7).fold(p.name)};
    std::vector<float> start(
        p.value().data<float>(), p.value().data<float>() + p.value().size()
    );
    std::vector<double> direction(start.size());
    double want = 0;
    for (std::size_t j = 0; j < start.size(); ++j) {
      direction[j] = random.normal();
      want += direction[j] * g.arrays[i].data<float>()[j];
    }
    const auto at = [&](double step) {
      for (std::size_t j = 0; j < start.size(); ++j) {
        p.value().data<float>()[j] =
            static_cast<float>(start[j] + step * direction[j]);
      }
      return loss(*model, m);
    };
    constexpr double kStep = 2e-3;
    const double got = (at(kStep) - at(-kStep)) / (2 * kStep);
    at(0);
    EXPECT_NEAR(got, want, 0.02 * std::abs(want) + 0.05) << p.name;
  }
}

TEST(Gradient, AgreesWithDifferencesForEveryParameter) {
  expect_gradients_hold(tiny());
}

// Small numbers of float16 vanish unless the loss is scaled, and large ones
// overflow when it is too much.
TEST(Gradient, InFloat16ComesOutAsInFloat32WhereTheLossIsScaled) {
  auto model = made_large(tiny());
  const MicroBatch all[] = {make_micro_batch(batch(), 0, 3)};
  const LanguageModel objective;
  const auto want = gradients_of(*model, objective, all, mx::float32);
  const auto got = gradients_of(*model, objective, all, mx::float16, 8);
  EXPECT_NEAR(got.loss_sum, want.loss_sum, 0.02 * want.loss_sum);
  for (std::size_t i = 0; i < want.arrays.size(); ++i) {
    const auto scaled = mx::multiply(want.arrays[i], mx::array(8.0f));
    auto off = mx::max(mx::abs(mx::subtract(got.arrays[i], scaled)));
    auto size = mx::max(mx::abs(scaled));
    EXPECT_LT(off.item<float>(), 0.03f * size.item<float>()) << i;
  }
  const auto lost = gradients_of(*model, objective, all, mx::float16, 1e9);
  auto sum = mx::array(0.0f);
  for (const auto& g : lost.arrays) sum = mx::add(sum, mx::sum(g));
  EXPECT_FALSE(std::isfinite(sum.item<float>()));
}

TEST(Gradient, ReachesALearntAlphaAndBeta) {
  auto config = tiny();
  config.gate = nn::GateConfig{
      .unit = "swish", .alpha = "learnable", .value = 0.7, .learn_beta = true
  };
  expect_gradients_hold(config);
}

TEST(Gradient, HoldsForGptTwosLayout) {
  expect_gradients_hold(small_gpt2(40, 64));
}

TEST(Gradient, HoldsForGemmasNorms) {
  auto config = tiny();
  config.norm.plus_one = config.sandwich_norms = config.qk_norm = true;
  config.attention_softcap = 5, config.final_softcap = 9;
  config.windows = {3, 0};
  config.embedding_scale = 4;
  expect_gradients_hold(config);
}

// What `bench train --ablate` switches off computes the same thing another way.
TEST(Gradient, UnfusedAttentionAndHeadGiveTheSame) {
  for (const auto& config : {tiny(), small_gpt2(40, 64)}) {
    const auto model = made_large(config);
    const auto m = make_micro_batch(batch(), 0, 3);
    const auto fused = gradients_of(*model, LanguageModel(), m, mx::float32);
    for (const bool attention : {true, false}) {
      const LanguageModel unfused(
          {.fused_attention = !attention, .fused_head = attention}
      );
      const auto g = gradients_of(*model, unfused, m, mx::float32);
      EXPECT_NEAR(g.loss_sum, fused.loss_sum, 1e-3);
      EXPECT_EQ(g.weight_sum, fused.weight_sum);
      for (std::size_t i = 0; i < g.arrays.size(); ++i) {
        auto apart =
            mx::max(mx::abs(mx::subtract(g.arrays[i], fused.arrays[i])));
        auto size = mx::max(mx::abs(fused.arrays[i]));
        EXPECT_LT(apart.item<float>(), 1e-4 * (size.item<float>() + 1));
      }
    }
  }
}

TEST(Gradient, CheckpointedBlocksGiveTheSame) {
  auto model = made_large(tiny());
  const auto m = make_micro_batch(batch(), 0, 3);
  const auto plain = gradients_of(*model, LanguageModel(), m, mx::float32);
  model->set_checkpointing({true, true});
  const auto again = gradients_of(*model, LanguageModel(), m, mx::float32);
  EXPECT_EQ(plain.loss_sum, again.loss_sum);
  for (std::size_t i = 0; i < plain.arrays.size(); ++i) {
    EXPECT_TRUE(mx::array_equal(plain.arrays[i], again.arrays[i]).item<bool>());
  }
}

TEST(Gradient, RowsAddUpHoweverTheyAreCut) {
  auto model = made_large(tiny());
  const auto b = batch();
  const auto whole = gradients_of(
      *model, LanguageModel(), make_micro_batch(b, 0, 3), mx::float32
  );
  auto first = gradients_of(
      *model, LanguageModel(), make_micro_batch(b, 0, 1), mx::float32
  );
  const auto rest = gradients_of(
      *model, LanguageModel(), make_micro_batch(b, 1, 3), mx::float32
  );
  EXPECT_NEAR(whole.loss_sum, first.loss_sum + rest.loss_sum, 1e-3);
  EXPECT_EQ(whole.weight_sum, first.weight_sum + rest.weight_sum);
  for (std::size_t i = 0; i < whole.arrays.size(); ++i) {
    const auto sum = mx::add(first.arrays[i], rest.arrays[i]);
    auto off = mx::max(mx::abs(mx::subtract(whole.arrays[i], sum)));
    EXPECT_LE(off.item<float>(), 1e-4);
  }
}

}  // namespace
}  // namespace hearth::train
