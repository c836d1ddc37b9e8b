#include "hearth/nn/attention.h"

#include "hearth/ops/arithmetic/op.h"

namespace hearth::nn {
namespace {

using io::Role;

mx::array to_heads(const mx::array& x, int heads, int dim) {
  return mx::reshape(x, {x.shape(0), x.shape(1), heads, dim});
}

}  // namespace

Attention::Attention(
    const ParameterSet& set,
    int layer,
    const AttentionConfig& config,
    std::shared_ptr<const Rotary> rotary
)
    : config_(config),
      rotary_(std::move(rotary)),
      output_(
          std::make_unique<Linear>(set.affine(Role::attention_out, layer))
      ) {
  for (const Role role : {Role::query, Role::key, Role::value, Role::joint}) {
    const Affine input = set.affine(role, layer);
    if (input) inputs_.push_back(std::make_unique<Linear>(input));
  }
  const Affine q = set.affine(Role::query_norm, layer);
  const Affine k = set.affine(Role::key_norm, layer);
  if (q) q_norm_.emplace(q, config.norm);
  if (k) k_norm_.emplace(k, config.norm);
}

std::vector<mx::array> Attention::project(
    const mx::array& x,
    const Pass& pass
) const {
  const auto& c = config_;
  if (joint()) {
    return {
        to_heads((*inputs_[0])(x, pass), c.heads + 2 * c.kv_heads, c.head_dim)
    };
  }
  const auto qkv = nn::project(
      x, {inputs_[0].get(), inputs_[1].get(), inputs_[2].get()}, pass
  );
  auto q = to_heads(qkv[0], c.heads, c.head_dim);
  auto k = to_heads(qkv[1], c.kv_heads, c.head_dim);
  auto v = to_heads(qkv[2], c.kv_heads, c.head_dim);
  if (q_norm_) q = (*q_norm_)(q, pass.dtype);
  if (k_norm_) {
    k = (*k_norm_)(k, pass.dtype);
  }
  if (rotary_) {
    q = (*rotary_)(q, pass);
    k = (*rotary_)(k, pass);
  }
  return {q, k, v};
}

mx::array Attention::attend_unfused(
    const std::vector<mx::array>& qkv,
    const ops::AttentionOptions& options
) const {
  const auto& c = config_;
  const auto parts =
      joint() ? mx::split(qkv[0], mx::Shape{c.heads, c.heads + c.kv_heads}, 2)
              : qkv;
  return ops::attention_reference(parts[0], parts[1], parts[2], options);
}

mx::array Attention::attend(
    const std::vector<mx::array>& qkv,
    const Pass& pass,
    std::size_t layer
) const {
  const auto& c = config_;
  ops::AttentionOptions options{
      .scale = c.scale,
      .softcap = c.softcap,
      .window = c.window,
      .query_segments = pass.segments
  };
  if (pass.caches == nullptr) {
    if (!pass.fused_attention) return attend_unfused(qkv, options);
    if (!joint()) return ops::attention(qkv[0], qkv[1], qkv[2], options);
    return ops::attention_qkv(qkv[0], c.heads, c.kv_heads, options);
  }
  const auto& cache = pass.caches->at(layer);
  if (!joint()) {
    return ops::cached_attention(qkv[0], qkv[1], qkv[2], cache, options);
  }
  const auto parts =
      mx::split(qkv[0], mx::Shape{c.heads, c.heads + c.kv_heads}, 2);
  return ops::cached_attention(parts[0], parts[1], parts[2], cache, options);
}

mx::array Attention::operator()(
    const mx::array& x,
    const Pass& pass,
    std::size_t layer
) const {
  const auto y = attend(project(x, pass), pass, layer);
  return (*output_)(
      mx::reshape(
          y, {x.shape(0), x.shape(1), config_.heads * config_.head_dim}
      ),
      pass
  );
}

std::vector<Linear*> Attention::linears() {
  std::vector<Linear*> out;
  for (const auto& l : inputs_) out.push_back(l.get());
  out.push_back(output_.get());
  return out;
}

}  // namespace hearth::nn
