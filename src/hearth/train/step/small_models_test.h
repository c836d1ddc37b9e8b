#pragma once
// Two small models for tests of a step: one as Llama is built, one as GPT-2.
#include <memory>

#include "hearth/models/load.h"
#include "hearth/nn/init.h"

namespace hearth::train {

inline models::DecoderConfig small_llama(int vocab, int max_length) {
  models::DecoderConfig c;
  c.family = "llama";
  c.vocab = vocab, c.dim = 16, c.layers = 2, c.heads = 4, c.kv_heads = 2;
  c.head_dim = 8, c.ffn = 24, c.max_length = max_length;
  c.tie = true;
  c.windows = {0, 0};
  c.rope = ops::RopeConfig{.dims = 8};
  return c;
}

inline models::DecoderConfig small_gpt2(int vocab, int max_length) {
  auto c = small_llama(vocab, max_length);
  c.gpt2_layout = true, c.gated = false, c.tie = false;
  c.kv_heads = c.heads = 2;
  c.rope.reset();
  c.norm.kind = nn::NormKind::layer;
  c.qkv_bias = c.out_bias = c.mlp_bias = true;
  c.act = ops::Activation::gelu_tanh;
  return c;
}

// All of it trains. Its matrices are larger than at a real start, so that
// attention tells tokens apart and every gradient is far from 0.
inline std::unique_ptr<models::Decoder> made_large(
    const models::DecoderConfig& config
) {
  auto model = std::make_unique<models::Decoder>(config);
  for (nn::Weight* p : model->parameters().all()) {
    nn::initialize(*p, 3, config.layers);
    p->trainable = true;
    if (p->shape.size() != 2) continue;
    for (std::size_t i = 0; i < p->value().size(); ++i) {
      p->value().data<float>()[i] *= 10;
    }
  }
  return model;
}

}  // namespace hearth::train
