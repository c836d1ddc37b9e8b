#include "hearth/models/decoder_block.h"

#include "hearth/ops/pace.h"

namespace hearth::models {
namespace {

using io::Role;

nn::AttentionConfig attention_config(const DecoderConfig& c, int layer) {
  const auto i = static_cast<std::size_t>(layer);
  return {
      .heads = c.heads,
      .kv_heads = c.kv_heads,
      .head_dim = c.head_dim,
      .norm = c.norm,
      .scale = c.score_scale(i),
      .softcap = c.attention_softcap,
      .window = c.windows[i]
  };
}

// Where the blueprint has one.
std::optional<nn::Norm> maybe_norm(
    nn::Affine own,
    const nn::NormConfig& config
) {
  if (!own) return {};
  return nn::Norm(own, config);
}

}  // namespace

Decoder::Block::Block(
    nn::ParameterSet& set,
    const DecoderConfig& c,
    int layer,
    std::shared_ptr<const nn::Rotary> rotary
)
    : set_(set),
      layer_(layer),
      before_attention_(set.affine(Role::attention_norm, layer), c.norm),
      attention_(set, layer, attention_config(c, layer), std::move(rotary)),
      after_attention_(
          maybe_norm(set.affine(Role::after_attention_norm, layer), c.norm)
      ),
      before_mlp_(set.affine(Role::mlp_norm, layer), c.norm),
      mlp_(set, layer, {.act = c.act, .gate = c.gate}),
      after_mlp_(maybe_norm(set.affine(Role::after_mlp_norm, layer), c.norm)) {}

Decoder::Stream Decoder::Block::operator()(
    const Stream& in,
    const nn::Pass& pass
) const {
  auto h = in.x;
  nn::Normed y = in.x;
  if (in.branch) {
    std::tie(h, y) = before_attention_.add(in.x, *in.branch, pass);
  } else {
    y = before_attention_(in.x, pass.dtype);
  }
  auto a = attention_(y, pass, static_cast<std::size_t>(layer_));
  if (after_attention_) a = (*after_attention_)(a, pass.dtype);
  std::tie(h, y) = before_mlp_.add(h, ops::pace(a), pass);
  auto m = mlp_(y, pass);
  if (after_mlp_) m = (*after_mlp_)(m, pass.dtype);
  return {h, ops::pace(m)};
}

Decoder::Stream Decoder::Block::checkpointed(
    const Stream& in,
    const nn::Pass& pass
) const {
  std::vector<nn::Weight*> own;
  for (nn::Weight* p : set_.trainable()) {
    if (p->part.layer == layer_) own.push_back(p);
  }
  std::vector<mx::array> arguments{in.x};
  if (in.branch) arguments.push_back(*in.branch);
  const std::size_t first = arguments.size();
  const auto groups = nn::grouped(own);
  for (const auto& a : nn::values_of(groups)) arguments.push_back(a);
  const auto run = mx::checkpoint([&, this, pass, groups,
                                   first](const std::vector<mx::array>& v) {
    const std::vector<mx::array> weights(
        v.begin() + static_cast<std::ptrdiff_t>(first), v.end()
    );
    const nn::GroupSubstitution inside(groups, weights);
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
