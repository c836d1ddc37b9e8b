#pragma once
// A decoder-only language model over arrays. It knows layers and their order;
// where weights come from and what is done with the result it does not.
#include <memory>
#include <vector>

#include "hearth/models/decoder_config.h"
#include "hearth/nn/attention.h"
#include "hearth/nn/mlp.h"
#include "hearth/nn/norm.h"
#include "hearth/nn/parameter_set.h"
#include "hearth/ops/head_loss/op.h"

namespace hearth::models {
namespace mx = mlx::core;

class Decoder {
 public:
  // Parameters are described and empty: load or initialise them.
  explicit Decoder(DecoderConfig config);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  const DecoderConfig& config() const { return config_; }
  nn::ParameterSet& parameters() { return *parameters_; }
  const nn::ParameterSet& parameters() const { return *parameters_; }

  // What the head reads, [batch, length, dim] in the pass's dtype, of ids
  // int32 [batch, length]. `states`, where given, receives the residual stream
  // after the embedding and after each block.
  mx::array hidden(
      const mx::array& ids,
      const nn::Pass& pass,
      std::vector<mx::array>* states = nullptr
  ) const;
  // float32 [..., vocabulary] of hidden states.
  mx::array logits(const mx::array& hidden, const nn::Pass& pass) const;
  // The fused loss of hidden() against targets; never holds all logits.
  ops::HeadLoss loss(
      const mx::array& ids,
      const mx::array& targets,
      const std::optional<mx::array>& weights,
      const nn::Pass& pass,
      ops::HeadLossOptions options = {}
  ) const;
  // log p(target) of each token, [batch, length]; differentiable where the
  // pass is for training.
  mx::array log_probs(
      const mx::array& ids,
      const mx::array& targets,
      const nn::Pass& pass
  ) const;

  // Blocks whose activations are computed again in the backward pass: one flag
  // a layer; empty for none.
  void set_checkpointing(std::vector<bool> layers);

  // Products that read the same input become one where nothing is trained
  // (nn/joined.h). Weights must be filled, and on a GPU.
  void join_products();

  // Every projection, the head's not among them.
  std::vector<nn::Linear*> linears();
  std::vector<nn::Gate*> gates();
  // Weights that a training step on a GPU may multiply with at once.
  std::vector<nn::WeightGroup> trained_together() const;
  // The matrix that gives the logits.
  nn::Weight& head() const { return *head_; }
  nn::Weight& embedding() const { return *embedding_; }

  // Fresh caches for one sequence; dtype is the activations' or int8, page as
  // ops::KvCache has it.
  std::vector<std::shared_ptr<ops::KvCache>> make_caches(
      mx::Dtype dtype,
      int page = 0
  ) const;

 private:
  class Block;
  // The residual stream and what the next norm adds to it.
  struct Stream;

  DecoderConfig config_;
  std::unique_ptr<nn::ParameterSet> parameters_;
  nn::Weight *embedding_ = nullptr, *head_ = nullptr;
  nn::Weight* positions_ = nullptr;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::unique_ptr<nn::Norm> final_norm_;
  std::vector<bool> checkpointed_;

  mx::array quantized_log_probs(
      const mx::array& h,
      const mx::array& targets,
      const nn::Pass& pass
  ) const;
  mx::array embed(
      const mx::array& ids,
      const mx::array& table,
      const nn::Pass& pass
  ) const;
  // The embedding and the head; one table in two uses whose gradients our own
  // kernel adds, where it is shared and trained.
  std::pair<mx::array, mx::array> tables(const nn::Pass& pass) const;
  mx::array run(
      const mx::array& embedded,
      const nn::Pass& pass,
      std::vector<mx::array>* states
  ) const;
};

// What embeddings are multiplied with where activations have that dtype:
// Gemma's factor is rounded to it.
float embedding_scale(const DecoderConfig& config, mx::Dtype dtype);

// Positions 0, 1, ... of each row, for rows that are one document each.
mx::array plain_positions(int batch, int length, int from = 0);

}  // namespace hearth::models
