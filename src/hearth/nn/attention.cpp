#include "hearth/nn/attention.h"

#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/pace.h"

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

std::vector<mx::array> Attention::parted(const mx::array& qkv) const {
  const auto& c = config_;
  return mx::split(qkv, mx::Shape{c.heads, c.heads + c.kv_heads}, 2);
}

std::vector<mx::array> Attention::heads_of(
    const Normed& x,
    const Pass& pass
) const {
  const auto& c = config_;
  const int all = c.heads + 2 * c.kv_heads;
  const bool one = joined_ && joined_->counts(pass);
  std::vector<mx::array> heads;
  if (const auto qkv = grouped_product(x, inputs())) {
    heads.push_back(to_heads(ops::pace(*qkv), all, c.head_dim));
    return heads;
  }
  if (joint() || one) {
    const auto y = one ? (*joined_)(x.y) : (*inputs_[0])(x.y, pass);
    heads.push_back(to_heads(y, all, c.head_dim));
    if (!q_norm_ && !k_norm_) return heads;
    heads = parted(heads[0]);
  } else {
    const auto qkv = nn::project(x, inputs(), pass);
    heads.push_back(to_heads(qkv[0], c.heads, c.head_dim));
    heads.push_back(to_heads(qkv[1], c.kv_heads, c.head_dim));
    heads.push_back(to_heads(qkv[2], c.kv_heads, c.head_dim));
  }
  if (q_norm_) heads[0] = (*q_norm_)(heads[0], pass.dtype);
  if (k_norm_) heads[1] = (*k_norm_)(heads[1], pass.dtype);
  return heads;
}

std::vector<mx::array> Attention::project(
    const Normed& x,
    const Pass& pass
) const {
  auto heads = heads_of(x, pass);
  if (!rotary_) return heads;
  if (heads.size() == 1) {
    return rotary_->heads(heads[0], config_.heads, config_.kv_heads, pass);
  }
  heads[0] = (*rotary_)(heads[0], pass);
  heads[1] = (*rotary_)(heads[1], pass);
  return heads;
}

mx::array Attention::attend_unfused(
    const std::vector<mx::array>& qkv,
    const ops::AttentionOptions& options
) const {
  const auto parts = qkv.size() == 1 ? parted(qkv[0]) : qkv;
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
    if (qkv.size() > 1) return ops::attention(qkv[0], qkv[1], qkv[2], options);
    return ops::attention_qkv(qkv[0], c.heads, c.kv_heads, options);
  }
  const auto& cache = pass.caches->at(layer);
  const auto parts = qkv.size() == 1 ? parted(qkv[0]) : qkv;
  return ops::cached_attention(parts[0], parts[1], parts[2], cache, options);
}

mx::array Attention::attend_pages(
    const Normed& x,
    const Pass& pass,
    std::size_t layer
) const {
  const auto& c = config_;
  const PagedPass& p = *pass.paged;
  const auto& pool = p.pools->at(layer);
  const ops::AttentionOptions options{
      .scale = c.scale, .softcap = c.softcap, .window = c.window
  };
  if (!p.before) {
    std::optional<mx::array> angles;
    if (rotary_) angles = rotary_->table(pass.length);
    return ops::paged_attention(
        heads_of(x, pass), pool, p.rows, angles, options
    );
  }
  auto qkv = project(x, pass);
  if (qkv.size() == 1) qkv = parted(qkv[0]);
  const auto pages = mx::reshape(p.rows.pages, {-1});
  const auto [keys, values] =
      ops::append_to_pages(qkv[1], qkv[2], pool, pages, *p.before);
  return ops::attention(qkv[0], keys, values, options);
}

mx::array Attention::operator()(
    const Normed& x,
    const Pass& pass,
    std::size_t layer
) const {
  const auto attended = pass.paged != nullptr
                            ? attend_pages(x, pass, layer)
                            : attend(project(x, pass), pass, layer);
  const auto y = pass.training ? ops::pace(attended) : attended;
  return (*output_)(
      mx::reshape(
          y, {x.y.shape(0), x.y.shape(1), config_.heads * config_.head_dim}
      ),
      pass
  );
}

void Attention::join() {
  if (joint() || (joined_ && joined_->current())) return;
  joined_ = Joined::of(inputs());
}

std::vector<const Linear*> Attention::inputs() const {
  std::vector<const Linear*> out;
  for (const auto& l : inputs_) out.push_back(l.get());
  return out;
}

WeightGroup Attention::trained_together() const {
  const bool rotated = rotary_ && !q_norm_ && !k_norm_;
  return rotated ? nn::trained_together(inputs()) : WeightGroup{};
}

std::vector<Linear*> Attention::linears() {
  std::vector<Linear*> out;
  for (const auto& l : inputs_) out.push_back(l.get());
  out.push_back(output_.get());
  return out;
}

}  // namespace hearth::nn
