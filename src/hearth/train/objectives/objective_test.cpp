// Objectives: what they sum, and what they divide it by.
#include <gtest/gtest.h>

#include "hearth/nn/init.h"
#include "hearth/train/objectives/language_model.h"
#include "hearth/train/step/gradient.h"

namespace hearth::train {
namespace {

std::unique_ptr<models::Decoder> small_model() {
  models::DecoderConfig c;
  c.family = "llama";
  c.vocab = 24, c.dim = 16, c.layers = 1, c.heads = 2, c.kv_heads = 2;
  c.head_dim = 8, c.ffn = 24, c.max_length = 16;
  c.tie = true;
  c.windows = {0};
  c.rope = ops::RopeConfig{.dims = 8};
  auto model = std::make_unique<models::Decoder>(c);
  for (nn::Weight* p : model->parameters().all()) {
    nn::initialize(*p, 3, 1);
    p->trainable = true;
  }
  return model;
}

MicroBatch two_rows() {
  data::Batch b;
  b.rows = 2, b.length = 6;
  for (int i = 0; i < 12; ++i) {
    b.ids.push_back(i * 5 % 24);
    b.targets.push_back(i * 7 % 24);
    b.segments.push_back(1);
    b.positions.push_back(i % 6);
    b.weights.push_back(1);
  }
  return make_micro_batch(b, 0, 2);
}

// What steers training is no part of the loss that models are compared by.
TEST(LanguageModel, OutsideTrainingTheLossIsPlainCrossEntropy) {
  mx::set_default_device(mx::Device::cpu);
  const auto model = small_model();
  const auto batch = two_rows();
  const LanguageModel plain;
  const LanguageModel steered({.label_smoothing = 0.3f, .z_loss = 0.1f});
  const double loss = loss_of(*model, plain, batch, mx::float32).loss_sum;
  EXPECT_EQ(loss_of(*model, steered, batch, mx::float32).loss_sum, loss);
  const auto trained = [&](const Objective& objective) {
    return gradients_of(*model, objective, batch, mx::float32).loss_sum;
  };
  EXPECT_NEAR(trained(plain), loss, 1e-4);
  EXPECT_GT(trained(steered), loss + 1);
}

}  // namespace
}  // namespace hearth::train
