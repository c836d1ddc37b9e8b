#include "hearth/models/blueprint.h"

#include <algorithm>

#include "hearth/base/error.h"

namespace hearth::models {
namespace {

using io::Role;
using nn::Init;
using nn::WeightSpec;

class Drawing {
 public:
  explicit Drawing(const DecoderConfig& config)
      : c_(config), style_(name_style(config)) {}

  std::vector<WeightSpec> all() {
    const int q = c_.heads * c_.head_dim;
    add(Role::embedding, {.shape = {c_.vocab, c_.dim}, .matrix = c_.tie});
    if (!c_.rope) add(Role::positions, {.shape = {c_.max_length, c_.dim}});
    for (layer_ = 0; layer_ < c_.layers; ++layer_) {
      norm(Role::attention_norm, c_.dim);
      attention(q, c_.kv_heads * c_.head_dim);
      if (c_.sandwich_norms) norm(Role::after_attention_norm, c_.dim);
      norm(Role::mlp_norm, c_.dim);
      mlp();
      if (c_.sandwich_norms) norm(Role::after_mlp_norm, c_.dim);
    }
    layer_ = -1;
    norm(Role::final_norm, c_.dim);
    if (!c_.tie) add(Role::head, {.shape = {c_.vocab, c_.dim}, .matrix = true});
    return std::move(weights_);
  }

 private:
  const DecoderConfig& c_;
  io::NameStyle style_;
  int layer_ = -1;
  std::vector<WeightSpec> weights_;

  // The name's ending is ".weight" unless another is given.
  void add(Role role, WeightSpec spec, const char* ending = ".weight") {
    spec.name = io::module_name(style_, role, layer_) + ending;
    spec.part.role = role;
    spec.part.layer = layer_;
    weights_.push_back(std::move(spec));
  }
  void add_bias(Role role, int size) {
    add(role, {.shape = {size}, .init = Init::zeros, .part = {.bias = true}},
        ".bias");
  }

  void norm(Role role, int size) {
    // Gemma's hold weight - 1.
    const Init start = c_.norm.plus_one ? Init::zeros : Init::ones;
    add(role, {.shape = {size}, .init = start});
    if (c_.norm.kind == nn::NormKind::layer) add_bias(role, size);
  }

  void projection(Role role, int in, int out, bool bias) {
    const bool to_stream = role == Role::attention_out || role == Role::down;
    add(role, {.shape = {out, in},
               .init = to_stream ? Init::small_normal : Init::normal,
               .transposed = c_.gpt2_layout,
               .matrix = true});
    if (bias) add_bias(role, out);
  }

  void attention(int q, int kv) {
    if (c_.gpt2_layout) {
      projection(Role::joint, c_.dim, q + 2 * kv, c_.qkv_bias);
    } else {
      projection(Role::query, c_.dim, q, c_.qkv_bias);
      projection(Role::key, c_.dim, kv, c_.qkv_bias);
      projection(Role::value, c_.dim, kv, c_.qkv_bias);
    }
    projection(Role::attention_out, q, c_.dim, c_.out_bias);
    if (!c_.qk_norm) return;
    norm(Role::query_norm, c_.head_dim);
    norm(Role::key_norm, c_.head_dim);
  }

  void mlp() {
    if (c_.gated || c_.gate) {
      projection(Role::gate, c_.dim, c_.ffn, c_.mlp_bias);
    }
    projection(Role::up, c_.dim, c_.ffn, c_.mlp_bias);
    projection(Role::down, c_.ffn, c_.dim, c_.mlp_bias);
    if (!c_.gate) return;
    const auto number = [](double start) {
      return WeightSpec{
          .shape = {1},
          .init = Init::constant,
          .constant = static_cast<float>(start)
      };
    };
    if (c_.gate->alpha == "learnable") {
      add(Role::gate_alpha, number(c_.gate->alpha_start()), "");
    }
    if (c_.gate->learn_beta) add(Role::gate_beta, number(c_.gate->beta), "");
  }
};

}  // namespace

io::NameStyle name_style(const DecoderConfig& c) {
  if (c.gpt2_layout) return io::NameStyle::gpt2;
  if (c.sandwich_norms) return io::NameStyle::gemma;
  return c.gated || c.gate ? io::NameStyle::llama : io::NameStyle::plain_mlp;
}

Blueprint::Blueprint(const DecoderConfig& config)
    : weights_(Drawing(config).all()) {
  if (config.gate) config.gate->check();
}

const WeightSpec* Blueprint::find(Role role, int layer) const {
  const auto at = std::ranges::find(
      weights_, io::NamedRole{role, layer, false}, &WeightSpec::part
  );
  return at == weights_.end() ? nullptr : &*at;
}

std::vector<const WeightSpec*> Blueprint::projections(int layer) const {
  std::vector<const WeightSpec*> out;
  for (const WeightSpec* w : projections()) {
    if (w->part.layer == layer) out.push_back(w);
  }
  return out;
}

std::vector<const WeightSpec*> Blueprint::projections() const {
  std::vector<const WeightSpec*> out;
  for (const WeightSpec& w : weights_) {
    if (w.matrix && w.part.layer >= 0) out.push_back(&w);
  }
  return out;
}

}  // namespace hearth::models
