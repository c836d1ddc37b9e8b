// Label smoothing and z-loss against their formulas, from logits in double.
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/models/load.h"
#include "hearth/nn/init.h"
#include "hearth/ops/linear/op.h"
#include "hearth/train/objectives/language_model.h"
#include "hearth/train/step/gradient.h"

namespace hearth::train {
namespace {

class SteeredLoss : public testing::Test {
 protected:
  SteeredLoss() {
    mx::set_default_device(mx::Device::cpu);
    make(0);
  }

  void make(float softcap) {
    models::DecoderConfig c;
    c.final_softcap = softcap;
    c.family = "llama";
    c.vocab = 24, c.dim = 16, c.layers = 1, c.heads = 2, c.kv_heads = 2;
    c.head_dim = 8, c.ffn = 24, c.max_length = 16;
    c.windows = {0};
    c.rope = ops::RopeConfig{.dims = 8};
    model_ = std::make_unique<models::Decoder>(c);
    for (nn::Weight* p : model_->parameters().all()) {
      nn::initialize(*p, 3, 1);
      p->trainable = true;
      // Logits that differ, so that smoothing has something to smooth.
      for (std::size_t i = 0; p->matrix && i < p->value().size(); ++i) {
        p->value().data<float>()[i] *= 20;
      }
    }
    data::Batch b;
    b.rows = 2, b.length = 6;
    for (int i = 0; i < 12; ++i) {
      b.ids.push_back(i * 5 % 24);
      b.targets.push_back(i * 7 % 24);
      b.segments.push_back(1);
      b.positions.push_back(i % 6);
      b.weights.push_back(i % 4 == 1 ? 0.0f : 1.0f);
    }
    batch_ = make_micro_batch(b, 0, 2);
  }

  // (1 - e) (-log p) + e times its mean over all words, and z times the square
  // of the logits' log sum.
  double by_hand(double smoothing, double z) const {
    nn::Pass pass;
    pass.dtype = mx::float32;
    pass.positions = batch_.positions, pass.length = batch_.length;
    // Before the cap, so that it is by hand too.
    auto logits =
        ops::linear(model_->hidden(batch_.ids, pass), model_->head().value());
    logits.eval();
    const double cap = model_->config().final_softcap;
    for (std::size_t i = 0; cap > 0 && i < logits.size(); ++i) {
      float& v = logits.data<float>()[i];
      v = static_cast<float>(cap * std::tanh(double{v} / cap));
    }
    double loss = 0;
    for (int t = 0; t < 12; ++t) {
      if (batch_.weights.data<float>()[t] == 0) continue;
      const float* y = logits.data<float>() + t * std::ptrdiff_t{24};
      double sum = 0, mean = 0;
      for (int i = 0; i < 24; ++i) sum += std::exp(double{y[i]});
      const double lse = std::log(sum);
      for (int i = 0; i < 24; ++i) mean += (lse - y[i]) / 24;
      const double own = lse - y[batch_.targets.data<std::int32_t>()[t]];
      loss += (1 - smoothing) * own + smoothing * mean + z * lse * lse;
    }
    return loss;
  }
  double trained(const LanguageModelOptions& options) const {
    return gradients_of(*model_, LanguageModel(options), batch_, mx::float32)
        .loss_sum;
  }

  std::unique_ptr<models::Decoder> model_;
  MicroBatch batch_;
};

TEST_F(SteeredLoss, IsPlainWithoutEither) {
  EXPECT_NEAR(trained({}), by_hand(0, 0), 1e-3);
}

TEST_F(SteeredLoss, SmoothingTakesAShareOfAllWords) {
  ASSERT_GT(std::abs(by_hand(0.2, 0) - by_hand(0, 0)), 0.1);
  EXPECT_NEAR(trained({.label_smoothing = 0.2f}), by_hand(0.2, 0), 1e-3);
}

TEST_F(SteeredLoss, ZLossIsTheSquareOfTheLogSum) {
  ASSERT_GT(std::abs(by_hand(0, 0.05) - by_hand(0, 0)), 0.1);
  EXPECT_NEAR(trained({.z_loss = 0.05f}), by_hand(0, 0.05), 1e-3);
}

// Gemma's cap bends the logits that the loss is of.
TEST_F(SteeredLoss, IsOfCappedLogits) {
  const double uncapped = by_hand(0, 0);
  make(2);
  ASSERT_GT(std::abs(by_hand(0, 0) - uncapped), 0.1);
  EXPECT_NEAR(trained({}), by_hand(0, 0), 1e-3);
  EXPECT_NEAR(
      loss_of(*model_, LanguageModel(), batch_, mx::float32).loss_sum,
      by_hand(0, 0), 1e-3
  );
}

TEST_F(SteeredLoss, BothAddUp) {
  EXPECT_NEAR(
      trained({.label_smoothing = 0.3f, .z_loss = 0.01f}), by_hand(0.3, 0.01),
      1e-3
  );
}

}  // namespace
}  // namespace hearth::train
