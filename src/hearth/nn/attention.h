#pragma once
// Self-attention as a module: projections, optional norms of queries and keys,
// optional rotary positions, and attention over the row or over a cache.
#include <memory>
#include <optional>
#include <vector>

#include "hearth/nn/joined.h"
#include "hearth/nn/norm.h"
#include "hearth/nn/rotary.h"
#include "hearth/nn/weight_group.h"
#include "hearth/ops/attention/op.h"

namespace hearth::nn {

struct AttentionConfig {
  int heads = 0, kv_heads = 0, head_dim = 0;
  NormConfig norm;               // of queries and keys
  float scale = 0, softcap = 0;  // as ops::AttentionOptions has them
  int window = 0;
};

class Attention {
 public:
  // Of the weights that the set has for that layer: queries, keys and values
  // or one matrix that gives all of them (GPT-2), the output, and norms where
  // there are any. rotary may be null; it is shared by the layers.
  Attention(
      const ParameterSet& set,
      int layer,
      const AttentionConfig& config,
      std::shared_ptr<const Rotary> rotary
  );

  // x [batch, length, dim]; `layer` picks the cache.
  mx::array operator()(
      const Normed& x,
      const Pass& pass,
      std::size_t layer
  ) const;

  std::vector<Linear*> linears();
  // As Joined says: queries, keys and values.
  void join();
  // The weights that a training step's one product may take; empty: none.
  WeightGroup trained_together() const;

 private:
  AttentionConfig config_;
  std::shared_ptr<const Rotary> rotary_;
  std::vector<std::unique_ptr<Linear>> inputs_;
  std::unique_ptr<Linear> output_;
  std::optional<Norm> q_norm_, k_norm_;
  std::optional<Joined> joined_;

  bool joint() const { return inputs_.size() == 1; }
  // Of all heads, not rotated yet: queries, keys and values, or one array of
  // all where one product gives them and nothing is to be done to them.
  std::vector<mx::array> heads_of(const Normed& x, const Pass& pass) const;
  // Of one array of all heads, as views.
  std::vector<mx::array> parted(const mx::array& qkv) const;
  std::vector<const Linear*> inputs() const;
  std::vector<mx::array> project(const Normed& x, const Pass& pass) const;
  mx::array attend_unfused(
      const std::vector<mx::array>& qkv,
      const ops::AttentionOptions& options
  ) const;
  mx::array attend_pages(
      const Normed& x,
      const Pass& pass,
      std::size_t layer
  ) const;
  mx::array attend(
      const std::vector<mx::array>& qkv,
      const Pass& pass,
      std::size_t layer
  ) const;
};

}  // namespace hearth::nn
