// The config.json of a model that was made here.
#include "hearth/models/write_config.h"

#include "hearth/base/error.h"
#include "hearth/models/family.h"

namespace hearth::models {
namespace {

Json gate_json(const nn::GateConfig& gate) {
  nn::GateConfig copy = gate;
  return Json{
      {"unit", copy.unit},   {"alpha", copy.alpha},
      {"value", copy.value}, {"low", copy.low},
      {"high", copy.high},   {"steps", copy.steps},
      {"step", copy.step},   {"reverse", copy.reverse},
      {"scale", copy.scale}, {"temperature", copy.temperature},
      {"beta", copy.beta},   {"learn_beta", copy.learn_beta},
  };
}

Json gpt2_json(const DecoderConfig& c) {
  return Json{
      {"architectures", {"GPT2LMHeadModel"}},
      {"model_type", "gpt2"},
      {"vocab_size", c.vocab},
      {"n_embd", c.dim},
      {"n_layer", c.layers},
      {"n_head", c.heads},
      {"n_inner", c.ffn},
      {"n_positions", c.max_length},
      {"n_ctx", c.max_length},
      {"layer_norm_epsilon", c.norm.eps},
      {"activation_function", "gelu_new"},
      {"tie_word_embeddings", c.tie},
      {"attn_pdrop", 0.0},
      {"embd_pdrop", 0.0},
      {"resid_pdrop", 0.0},
  };
}

}  // namespace

Json config_json(const DecoderConfig& c) {
  if (c.family == "gpt2") return gpt2_json(c);
  const Family* family = family_named(c.family);
  const bool ours = c.family == "hearth";
  if (family == nullptr || (family->start == nullptr && !ours)) {
    throw Error("[models.config_json] cannot describe a new " + c.family);
  }
  Json j{
      {"architectures", {family->architecture}},
      {"model_type", c.family},
      {"vocab_size", c.vocab},
      {"hidden_size", c.dim},
      {"intermediate_size", c.ffn},
      {"num_hidden_layers", c.layers},
      {"num_attention_heads", c.heads},
      {"num_key_value_heads", c.kv_heads},
      {"head_dim", c.head_dim},
      {"hidden_act", ops::name_of(c.act)},
      {"max_position_embeddings", c.max_length},
      {"rms_norm_eps", c.norm.eps},
      {"rope_theta", c.rope->base},
      {"tie_word_embeddings", c.tie},
  };
  if (c.family == "llama" || ours) {
    j["attention_bias"] = c.qkv_bias;
    j["mlp_bias"] = c.mlp_bias;
  }
  if (c.gate) j["gate"] = gate_json(*c.gate);
  return j;
}

}  // namespace hearth::models
