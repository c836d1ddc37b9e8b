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

// Which family it is of, as the file says it.
Json family_json(const DecoderConfig& c) {
  return Json{
      {"architectures", {family_named(c.family)->architecture}},
      {"model_type", c.family},
  };
}

}  // namespace

Json write_gpt2(const DecoderConfig& c) {
  Json j = family_json(c);
  j.update(
      Json{
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
      }
  );
  return j;
}

Json write_common(const DecoderConfig& c) {
  Json j = family_json(c);
  j.update(
      Json{
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
      }
  );
  return j;
}

Json write_with_biases(const DecoderConfig& c) {
  Json j = write_common(c);
  j["attention_bias"] = c.qkv_bias;
  j["mlp_bias"] = c.mlp_bias;
  return j;
}

Json config_json(const DecoderConfig& c) {
  const Family* family = family_named(c.family);
  if (family == nullptr || family->write == nullptr) {
    throw Error("[models.config_json] cannot describe a new " + c.family);
  }
  Json j = family->write(c);
  if (c.gate) j["gate"] = gate_json(*c.gate);
  return j;
}

}  // namespace hearth::models
