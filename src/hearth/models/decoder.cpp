#include "hearth/models/decoder.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/models/blueprint.h"
#include "hearth/models/decoder_block.h"
#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/dropout/op.h"
#include "hearth/ops/dry_run.h"
#include "hearth/ops/embedding/op.h"

namespace hearth::models {

using io::Role;

float embedding_scale(const DecoderConfig& c, mx::Dtype dtype) {
  if (dtype != mx::bfloat16) return c.embedding_scale;
  auto rounded = mx::astype(
      mx::astype(mx::array(c.embedding_scale), mx::bfloat16), mx::float32
  );
  return rounded.item<float>();
}

Decoder::Decoder(DecoderConfig config)
    : config_(std::move(config)),
      parameters_(std::make_unique<nn::ParameterSet>()) {
  const DecoderConfig& c = config_;
  c.check();
  nn::ParameterSet& set = *parameters_;
  const Blueprint blueprint(c);
  for (const nn::WeightSpec& w : blueprint.weights()) set.add(w);
  embedding_ = set.find({Role::embedding});
  positions_ = set.find({Role::positions});
  head_ = c.tie ? embedding_ : set.find({Role::head});
  std::shared_ptr<const nn::Rotary> wide, local;
  if (c.rope) wide = local = std::make_shared<nn::Rotary>(*c.rope);
  if (c.local_rope) local = std::make_shared<nn::Rotary>(*c.local_rope);
  for (int i = 0; i < c.layers; ++i) {
    const bool windowed = c.windows[static_cast<std::size_t>(i)] > 0;
    blocks_.push_back(
        std::make_unique<Block>(set, c, i, windowed ? local : wide)
    );
  }
  final_norm_ =
      std::make_unique<nn::Norm>(set.affine(Role::final_norm), c.norm);
}

Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

mx::array Decoder::embed(
    const mx::array& ids,
    const mx::array& table,
    const nn::Pass& pass
) const {
  const ops::Home home = pass.training ? embedding_->home : nullptr;
  auto x = ops::embedding(ids, table, mx::float32, home);
  if (config_.embedding_scale != 1) {
    x = ops::scale(x, mx::array(embedding_scale(config_, pass.dtype)));
  }
  if (pass.noise && pass.embedding_noise > 0) {
    const auto area = static_cast<float>(ids.shape(1) * config_.dim);
    constexpr std::uint64_t kOwnStream = 1 << 20;
    x = ops::add_noise(
        x, *pass.noise, kOwnStream, pass.embedding_noise / std::sqrt(area)
    );
  }
  if (positions_ == nullptr) return x;
  return ops::add(
      x, ops::embedding(
             pass.positions, positions_->value(), mx::float32,
             pass.training ? positions_->home : nullptr
         )
  );
}

mx::array Decoder::run(
    const mx::array& embedded,
    const nn::Pass& pass,
    std::vector<mx::array>* states
) const {
  Stream stream{embedded, {}};
  if (states != nullptr) states->push_back(embedded);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const bool again = i < checkpointed_.size() && checkpointed_[i];
    stream = again ? blocks_[i]->checkpointed(stream, pass)
                   : (*blocks_[i])(stream, pass);
    if (states != nullptr) {
      states->push_back(ops::add(stream.x, *stream.branch));
    }
  }
  return final_norm_->add(stream.x, *stream.branch, pass, false).second.y;
}

mx::array Decoder::hidden(
    const mx::array& ids,
    const nn::Pass& pass,
    std::vector<mx::array>* states
) const {
  return run(embed(ids, embedding_->value(), pass), pass, states);
}

mx::array Decoder::logits(const mx::array& hidden, const nn::Pass& pass) const {
  // A quantised product answers in the dtype it is asked in, and bfloat16 is
  // too coarse for logits: near 20 its step is an eighth.
  const auto h = head_->quantized() ? mx::astype(hidden, mx::float32) : hidden;
  auto y = mx::astype(nn::multiply(h, *head_, {}, pass), mx::float32);
  if (config_.final_softcap == 0) return y;
  const auto cap = mx::array(config_.final_softcap);
  return mx::multiply(cap, mx::tanh(mx::divide(y, cap)));
}

std::pair<mx::array, mx::array> Decoder::tables(const nn::Pass& pass) const {
  if (!pass.training || !config_.tie || !embedding_->trainable) {
    return {embedding_->value(), head_->value()};
  }
  const auto& w = *embedding_;
  const auto uses =
      w.home ? ops::share(w.value(), 2, w.home) : ops::fork(w.value(), 2);
  return {uses[0], uses[1]};
}

ops::HeadLoss Decoder::loss(
    const mx::array& ids,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    const nn::Pass& pass,
    ops::HeadLossOptions options
) const {
  options.terms.soft_cap = config_.final_softcap;
  const auto [table, head] = tables(pass);
  const auto h = run(embed(ids, table, pass), pass, nullptr);
  if (!pass.training) options.input_gradient = options.weight_gradient = false;
  if (!head_->trainable) options.weight_gradient = false;
  if (pass.training && pass.plain_loss) options.home = head_->home;
  if (!pass.fused_head) {
    return ops::head_loss_unfused(
        h, head, targets, weights, options.terms, head_->packed()
    );
  }
  return ops::head_loss(
      h, head, targets, weights, options, {}, head_->packed()
  );
}

mx::array Decoder::log_probs(
    const mx::array& ids,
    const mx::array& targets,
    const nn::Pass& pass
) const {
  if (pass.training) {
    const auto [table, head] = tables(pass);
    return ops::head_log_probs(
        run(embed(ids, table, pass), pass, nullptr), head, targets,
        config_.final_softcap, head_->packed(), head_->home
    );
  }
  if (head_->value().size() > 0) {
    return loss(ids, targets, {}, pass).log_probs;
  }
  return quantized_log_probs(hidden(ids, pass), targets, pass);
}

// A head that is only held quantised has no fused loss: some tokens at a time.
mx::array Decoder::quantized_log_probs(
    const mx::array& h,
    const mx::array& targets,
    const nn::Pass& pass
) const {
  constexpr int kLogits = 1 << 24;
  const int tokens = static_cast<int>(targets.size());
  const int step = std::max(1, kLogits / config_.vocab);
  const auto rows = mx::reshape(h, {1, tokens, config_.dim});
  const auto wanted = mx::reshape(targets, {1, tokens});
  std::vector<mx::array> parts;
  for (int from = 0; from < tokens; from += step) {
    const int to = std::min(tokens, from + step);
    const auto y =
        logits(mx::slice(rows, {0, from, 0}, {1, to, config_.dim}), pass);
    const auto target = mx::slice(wanted, {0, from}, {1, to});
    const auto at = mx::expand_dims(mx::maximum(target, mx::array(0)), -1);
    const auto picked = mx::squeeze(mx::take_along_axis(y, at, -1), -1);
    const auto all = mx::subtract(picked, mx::logsumexp(y, -1));
    parts.push_back(
        mx::where(mx::less(target, mx::array(0)), mx::array(0.0f), all)
    );
    ops::evaluate({parts.back()});
  }
  return mx::reshape(mx::concatenate(parts, 1), targets.shape());
}

void Decoder::set_checkpointing(std::vector<bool> layers) {
  if (!layers.empty() && layers.size() != blocks_.size()) {
    throw UsageError(
        fmt::format(
            "[models.Decoder] checkpointing must name {} layers, got {}",
            blocks_.size(), layers.size()
        )
    );
  }
  checkpointed_ = std::move(layers);
}

void Decoder::join_products() {
  for (const auto& block : blocks_) block->join_products();
}

std::vector<nn::Linear*> Decoder::linears() {
  std::vector<nn::Linear*> all;
  for (const auto& block : blocks_) {
    for (nn::Linear* l : block->linears()) all.push_back(l);
  }
  return all;
}

std::vector<nn::WeightGroup> Decoder::trained_together() const {
  std::vector<nn::WeightGroup> all;
  for (const auto& block : blocks_) {
    for (auto& group : block->trained_together()) {
      if (!group.empty()) all.push_back(std::move(group));
    }
  }
  return all;
}

std::vector<nn::Gate*> Decoder::gates() {
  std::vector<nn::Gate*> all;
  for (const auto& block : blocks_) {
    if (nn::Gate* g = block->gate()) all.push_back(g);
  }
  return all;
}

std::vector<std::shared_ptr<ops::KvCache>> Decoder::make_caches(
    mx::Dtype dtype,
    int page
) const {
  std::vector<std::shared_ptr<ops::KvCache>> caches;
  for (int i = 0; i < config_.layers; ++i) {
    caches.push_back(
        std::make_shared<ops::KvCache>(
            config_.kv_heads, config_.head_dim, dtype, page
        )
    );
  }
  return caches;
}

mx::array plain_positions(int batch, int length, int from) {
  const auto row =
      mx::reshape(mx::arange(from, from + length, mx::int32), {1, length});
  return mx::contiguous(mx::broadcast_to(row, {batch, length}));
}

}  // namespace hearth::models
