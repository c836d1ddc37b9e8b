// Gradients of adapters against central differences, and the objective of
// preference pairs on top of them.
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/base/temp_folder_test.h"
#include "hearth/models/adapters.h"
#include "hearth/train/objectives/language_model.h"
#include "hearth/train/objectives/preference.h"
#include "hearth/train/step/gradient.h"

namespace hearth::train {
namespace {

const std::string kBase = HEARTH_SOURCE_DIR "/tests/golden/models/llama3-gqa";

models::LoadedModel adapted(bool dora) {
  auto model = models::load_model(
      kBase, {.use = models::Use::frozen_base, .compute = mx::float32}
  );
  nn::LoraConfig config;
  config.rank = 3, config.alpha = 6, config.dora = dora;
  config.targets = {"q_proj", "v_proj", "down_proj"};
  models::attach_adapters(*model.decoder, *model.source, config);
  for (nn::Linear* linear : model.decoder->linears()) {
    if (linear->lora() != nullptr) linear->lora()->start_magnitude();
  }
  for (nn::Weight* p : model.decoder->parameters().trainable()) {
    RandomStream random{RandomKey(5).fold(p->name)};
    for (std::size_t i = 0; i < p->value().size(); ++i) {
      float& v = p->value().data<float>()[i];
      v = p->matrix ? static_cast<float>(0.3 * random.normal())
                    : v * static_cast<float>(1 + 0.2 * random.normal());
    }
  }
  return model;
}

MicroBatch batch(std::uint32_t rows) {
  data::Batch b;
  b.rows = rows, b.length = 7;
  RandomStream random{RandomKey(9)};
  for (std::uint32_t i = 0; i < b.rows * b.length; ++i) {
    b.ids.push_back(static_cast<std::int32_t>(random.below(60)));
    b.targets.push_back(static_cast<std::int32_t>(random.below(60)));
    b.segments.push_back(1);
    b.positions.push_back(static_cast<std::int32_t>(i % b.length));
    b.weights.push_back(i % 5 == 4 ? 0.0f : 1.0f);
  }
  return make_micro_batch(b, 0, rows);
}

void add_to(nn::Weight& p, const std::vector<double>& by, double times) {
  for (std::size_t i = 0; i < by.size(); ++i) {
    p.value().data<float>()[i] += static_cast<float>(times * by[i]);
  }
}

void expect_gradients_hold(
    models::Decoder& model,
    const Objective& objective,
    const std::string& pattern
) {
  const auto m = batch(4);
  const auto g = gradients_of(model, objective, m, mx::float32);
  const auto parameters = model.parameters().trainable();
  ASSERT_EQ(g.arrays.size(), parameters.size());
  int seen = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    nn::Weight& p = *parameters[i];
    if (!nn::matches(pattern, p.name)) continue;
    ++seen;
    RandomStream random{RandomKey(7).fold(p.name)};
    std::vector<double> direction(p.value().size());
    double want = 0;
    for (std::size_t j = 0; j < direction.size(); ++j) {
      direction[j] = random.normal();
      want += direction[j] * g.arrays[i].data<float>()[j];
    }
    const auto at = [&](double step) {
      add_to(p, direction, step);
      const double loss = loss_of(model, objective, m, mx::float32).loss_sum;
      add_to(p, direction, -step);
      return loss;
    };
    constexpr double kStep = 2e-3;
    const double got = (at(kStep) - at(-kStep)) / (2 * kStep);
    EXPECT_NEAR(got, want, 0.02 * std::abs(want) + 0.02) << p.name;
  }
  EXPECT_GT(seen, 0);
}

TEST(LoraGradient, HoldsForAAndB) {
  auto model = adapted(false);
  expect_gradients_hold(*model.decoder, LanguageModel(), "*lora_*");
}

// The norm in DoRA is a constant by definition, so that a difference through
// it would see more than the gradient does: the magnitudes alone are compared.
TEST(LoraGradient, HoldsForDorasMagnitudes) {
  auto model = adapted(true);
  expect_gradients_hold(*model.decoder, LanguageModel(), "*magnitude*");
}

TEST(LoraGradient, HoldsForPreferencePairs) {
  auto model = adapted(false);
  expect_gradients_hold(*model.decoder, Preference(0.3f), "*lora_*");
}

TEST(Preference, APairWithoutAdaptersLosesLogTwo) {
  const auto model = models::load_model(
      kBase, {.use = models::Use::frozen_base, .compute = mx::float32}
  );
  const auto got =
      loss_of(*model.decoder, Preference(0.3f), batch(4), mx::float32);
  EXPECT_EQ(got.weight_sum, 2);
  EXPECT_NEAR(got.loss_sum, 2 * std::log(2.0), 1e-5);
}

TEST(Preference, RowsThatFillABatchUpAreNoPairs) {
  auto model = adapted(false);
  const auto full = batch(4);
  auto filled = batch(8);
  const auto keep = mx::less(mx::arange(8), mx::array(4));
  filled.weights = mx::multiply(
      filled.weights, mx::astype(mx::reshape(keep, {8, 1}), mx::float32)
  );
  const auto want =
      loss_of(*model.decoder, Preference(0.3f), full, mx::float32);
  const auto got =
      loss_of(*model.decoder, Preference(0.3f), filled, mx::float32);
  EXPECT_EQ(got.weight_sum, 2);
  EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-5);
  EXPECT_EQ(got.metric_sums.at("accuracy"), want.metric_sums.at("accuracy"));
}

// Told apart: what lowers the loss below log 2.
TEST(Preference, CountsThePairsThatAreToldApart) {
  auto model = adapted(false);
  for (const std::uint32_t first : {0U, 2U}) {
    auto one = batch(4);
    const auto rows = mx::arange(4);
    const auto keep = mx::logical_and(
        mx::greater_equal(rows, mx::array(static_cast<int>(first))),
        mx::less(rows, mx::array(static_cast<int>(first + 2)))
    );
    one.weights = mx::multiply(
        one.weights, mx::astype(mx::reshape(keep, {4, 1}), mx::float32)
    );
    const auto got =
        loss_of(*model.decoder, Preference(0.3f), one, mx::float32);
    EXPECT_EQ(got.weight_sum, 1);
    EXPECT_EQ(
        got.metric_sums.at("accuracy"), got.loss_sum < std::log(2.0) ? 1 : 0
    );
  }
}

// Going on from an adapter, the start is the base with that adapter.
TEST(Preference, IsMeasuredAgainstTheAdapterItStartsFrom) {
  for (const bool dora : {false, true}) {
    auto model = adapted(dora);
    const TempFolder folder;
    const std::string start = folder.path() + "/start";
    models::save_adapter(*model.decoder, kBase, start, false);
    const Preference objective(
        0.3f,
        models::read_adapter(*model.decoder, *model.source, mx::float32, start)
    );
    const auto got = loss_of(*model.decoder, objective, batch(4), mx::float32);
    EXPECT_NEAR(got.loss_sum, 2 * std::log(2.0), 1e-4);
    const auto bare =
        loss_of(*model.decoder, Preference(0.3f), batch(4), mx::float32);
    EXPECT_GT(std::abs(bare.loss_sum - 2 * std::log(2.0)), 0.01);
    // What is trained moves; the start does not.
    auto* p = model.decoder->parameters().trainable().front();
    for (std::size_t i = 0; i < p->value().size(); ++i) {
      p->value().data<float>()[i] += 0.3f;
    }
    const auto moved =
        loss_of(*model.decoder, objective, batch(4), mx::float32);
    EXPECT_GT(std::abs(moved.loss_sum - 2 * std::log(2.0)), 1e-3);
  }
}

}  // namespace
}  // namespace hearth::train
