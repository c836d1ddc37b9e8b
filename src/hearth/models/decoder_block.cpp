#include "hearth/models/decoder_block.h"

namespace hearth::models {
namespace {

nn::AttentionConfig attention_config(const DecoderConfig& c, std::size_t i) {
  nn::AttentionConfig a;
  a.dim = c.dim, a.heads = c.heads, a.kv_heads = c.kv_heads;
  a.head_dim = c.head_dim;
  a.qkv_bias = c.qkv_bias, a.out_bias = c.out_bias;
  if (c.qk_norm) a.qk_norm = c.norm;
  a.scale = c.score_scale(i), a.softcap = c.attention_softcap;
  a.window = c.windows[i];
  a.joint = c.gpt2_layout;
  return a;
}

nn::MlpConfig mlp_config(const DecoderConfig& c) {
  return {
      .dim = c.dim,
      .ffn = c.ffn,
      .act = c.act,
      .bias = c.mlp_bias,
      .gated = c.gated,
      .conv1d = c.gpt2_layout,
      .gate = c.gate
  };
}

const char* first_norm(const DecoderConfig& c) {
  return c.gpt2_layout ? ".ln_1" : ".input_layernorm";
}
const char* second_norm(const DecoderConfig& c) {
  return c.gpt2_layout      ? ".ln_2"
         : c.sandwich_norms ? ".pre_feedforward_layernorm"
                            : ".post_attention_layernorm";
}

std::optional<nn::Norm> sandwich(
    nn::ParameterSet& set,
    const std::string& name,
    const DecoderConfig& c
) {
  if (!c.sandwich_norms) return {};
  return nn::Norm(set, name, c.dim, c.norm);
}

}  // namespace

Decoder::Block::Block(
    nn::ParameterSet& set,
    const std::string& name,
    const DecoderConfig& c,
    std::size_t layer,
    std::shared_ptr<const nn::Rotary> rotary
)
    : set_(set),
      name_(name),
      layer_(layer),
      before_attention_(set, name + first_norm(c), c.dim, c.norm),
      attention_(
          set,
          name + (c.gpt2_layout ? ".attn" : ".self_attn"),
          attention_config(c, layer),
          std::move(rotary)
      ),
      after_attention_(sandwich(set, name + ".post_attention_layernorm", c)),
      before_mlp_(set, name + second_norm(c), c.dim, c.norm),
      mlp_(set, name + ".mlp", mlp_config(c)),
      after_mlp_(sandwich(set, name + ".post_feedforward_layernorm", c)) {}

Decoder::Stream Decoder::Block::operator()(
    const Stream& in,
    const nn::Pass& pass
) const {
  auto h = in.x;
  auto y = in.x;
  if (in.branch) {
    std::tie(h, y) = before_attention_.add(in.x, *in.branch);
  } else {
    y = before_attention_(in.x, pass.dtype);
  }
  auto a = attention_(y, pass, layer_);
  if (after_attention_) a = (*after_attention_)(a, pass.dtype);
  std::tie(h, y) = before_mlp_.add(h, a);
  auto m = mlp_(y, pass);
  if (after_mlp_) m = (*after_mlp_)(m, pass.dtype);
  return {h, m};
}

Decoder::Stream Decoder::Block::checkpointed(
    const Stream& in,
    const nn::Pass& pass
) const {
  std::vector<nn::Weight*> own;
  for (nn::Weight* p : set_.trainable()) {
    if (p->name.starts_with(name_ + ".")) own.push_back(p);
  }
  std::vector<mx::array> arguments{in.x};
  if (in.branch) arguments.push_back(*in.branch);
  const std::size_t first = arguments.size();
  for (const nn::Weight* p : own) arguments.push_back(p->value());
  const auto run = mx::checkpoint([&, this, pass, own,
                                   first](const std::vector<mx::array>& v) {
    const std::vector<mx::array> weights(
        v.begin() + static_cast<std::ptrdiff_t>(first), v.end()
    );
    const nn::Substitution inside(own, weights);
    Stream stream{v[0], {}};
    if (first > 1) stream.branch = v[1];
    const Stream out = (*this)(stream, pass);
    return std::vector<mx::array>{out.x, *out.branch};
  });
  const auto out = run(arguments);
  return {out[0], out[1]};
}

std::vector<nn::Linear*> Decoder::Block::linears() {
  auto all = attention_.linears();
  for (nn::Linear* l : mlp_.linears()) all.push_back(l);
  return all;
}

}  // namespace hearth::models
