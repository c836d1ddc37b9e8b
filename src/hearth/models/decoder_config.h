#pragma once
// A decoder-only language model, described: what every family's config.json is
// translated to. Nothing here knows a family by name but `family` itself.
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/nn/gate.h"
#include "hearth/nn/norm.h"
#include "hearth/ops/gate/op.h"
#include "hearth/ops/rope/frequencies.h"

namespace hearth::models {

struct DecoderConfig {
  std::string family;  // model_type
  int vocab = 0, dim = 0, layers = 0;
  int heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
  int max_length = 0;  // positions the model was made for
  bool tie = false;

  nn::NormConfig norm;
  bool qk_norm = false;
  bool sandwich_norms = false;  // Gemma: around attention and MLP

  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  ops::Activation act = ops::Activation::silu;
  bool gated = true;
  std::optional<nn::GateConfig> gate;

  float attention_scale = 0;    // 0: 1 / sqrt(head_dim)
  bool scale_by_layer = false;  // divided by the layer's number, from 1
  float attention_softcap = 0, final_softcap = 0;
  // One for each layer; 0 sees everything.
  std::vector<int> windows;

  // Without it, positions are learnt (GPT-2).
  std::optional<ops::RopeConfig> rope;
  // Of layers with a window, where theirs differs (Gemma 3).
  std::optional<ops::RopeConfig> local_rope;

  float embedding_scale = 1;

  // GPT-2's module names and transposed weights; else Llama's.
  bool gpt2_layout = false;

  bool operator==(const DecoderConfig&) const = default;
  // What scores of that layer are multiplied with.
  float score_scale(std::size_t layer) const;
  // Beside weights, the bytes of a token's keys and values.
  std::size_t kv_bytes_per_token(std::size_t bytes_per_element) const;
  // Throws UsageError when the numbers do not fit together.
  void check() const;
};

}  // namespace hearth::models
