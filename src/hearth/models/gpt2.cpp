// GPT-2: learnt positions, layer norms, a plain MLP.
#include "hearth/base/error.h"
#include "hearth/models/family.h"

namespace hearth::models {

void start_gpt2(DecoderConfig& c) {
  c.norm.kind = nn::NormKind::layer;
  c.gated = false;
  c.gpt2_layout = true;
  c.qkv_bias = c.out_bias = c.mlp_bias = true;
  c.act = ops::Activation::gelu_tanh;
}

DecoderConfig parse_gpt2(ConfigKeys& keys) {
  DecoderConfig c;
  c.vocab = keys.size("vocab_size");
  c.dim = keys.size("n_embd");
  c.layers = keys.size("n_layer");
  c.heads = c.kv_heads = keys.size("n_head");
  if (c.dim % c.heads != 0) keys.refuse("n_head", "must divide n_embd");
  c.head_dim = c.dim / c.heads;
  c.ffn = keys.size("n_inner", 4 * c.dim);
  c.max_length = keys.size("n_positions", 1024);
  start_gpt2(c);
  c.norm.eps = keys.epsilon("layer_norm_epsilon", 1e-5);
  c.tie = keys.boolean("tie_word_embeddings", true);
  c.windows.assign(static_cast<std::size_t>(c.layers), 0);
  c.act = parse_activation(keys, "activation_function", "gelu_new");
  if (!keys.boolean("scale_attn_weights", true)) c.attention_scale = 1;
  c.scale_by_layer = keys.boolean("scale_attn_by_inverse_layer_idx", false);
  keys.require("add_cross_attention", false);
  keys.ignore(
      {"n_ctx", "reorder_and_upcast_attn", "attn_pdrop", "embd_pdrop",
       "resid_pdrop", "summary_type", "summary_use_proj", "summary_activation",
       "summary_first_dropout", "summary_proj_to_labels",
       "max_position_embeddings"}
  );
  return c;
}

}  // namespace hearth::models
