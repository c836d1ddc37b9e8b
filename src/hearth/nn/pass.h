#pragma once
// What one run through a model is told beside its tokens.
#include <memory>
#include <optional>
#include <vector>

#include "hearth/ops/kv_cache/op.h"
#include "hearth/ops/op.h"
#include "hearth/ops/paged_attention/op.h"
#include "hearth/ops/quantized_linear/weight.h"

namespace hearth::nn {
namespace mx = mlx::core;

struct LoraSet;

// Keys and values in pages that several sequences share, as a GPU decodes:
// either a step of one token for each row, or a piece of one sequence's text.
struct PagedPass {
  const std::vector<mx::array>* pools;  // one for each layer
  ops::PageRows rows;
  // Of a piece: the tokens before it, which rows.lengths says too.
  std::optional<int> before;
};

struct Pass {
  // Of activations: bfloat16 or float32. The residual stream is float32.
  mx::Dtype dtype = mx::bfloat16;
  // Gradients will be taken.
  bool training = false;
  // What one pass over memory makes of what is kept anyway is not kept but made
  // again in the backward pass: what a feed-forward part's last product reads
  // and, on a GPU, what a norm gave to the products behind it.
  bool cheap_again = true;
  // Adapters count; off, the base alone is computed.
  bool adapters = true;
  // How quantised weights are multiplied.
  ops::QuantCompute quantized = ops::QuantCompute::kInt8;
  // [batch, length] int32.
  mx::array positions{0};
  // One past the largest position.
  int length = 0;
  // Document ids [batch, length]; without them a row is one document.
  std::optional<mx::array> segments;
  // One uint64 for each token while training with noise; else absent.
  std::optional<mx::array> noise;
  // NEFTune: noise on the embeddings of alpha / sqrt(length width).
  float embedding_noise = 0;
  // Off, the definition runs in MLX's own ops: every score is held. What the
  // fused op saves is measured against it.
  bool fused_attention = true;
  // Off, all logits are held between the head's product and the loss.
  bool fused_head = true;
  // The head's loss is what is differentiated, multiplied by nothing: its
  // gradient can be added where the head's gradients are summed.
  bool plain_loss = false;
  // One for each layer while decoding; else empty.
  std::vector<std::shared_ptr<ops::KvCache>>* caches = nullptr;
  // In place of caches.
  const PagedPass* paged = nullptr;
  // Takes the place of the layers' own adapters; null: those count.
  const LoraSet* lora = nullptr;
};

}  // namespace hearth::nn
