#include "hearth/infer/graph/sequence.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/execution.h"
#include "hearth/profile/zone.h"

namespace hearth::infer {
namespace {

mx::Dtype kv_dtype(KvType kv, mx::Dtype compute) {
  if (kv == KvType::int8) return mx::int8;
  const auto dtype = kv == KvType::automatic ? compute
                     : kv == KvType::float32 ? mx::float32
                                             : mx::bfloat16;
  if (dtype != compute) {
    throw UsageError(
        fmt::format(
            "[infer.Sequence] keys and values must be int8 or of the "
            "activations' type, {}",
            compute == mx::float32 ? "fp32" : "bf16"
        )
    );
  }
  return dtype;
}

// Steps of few tokens hold next to no memory, and waiting for room after every
// second op costs more than the ops do.
class FreeRunning {
 public:
  explicit FreeRunning(bool wanted) : before_(ops::run_ahead()) {
    if (wanted) ops::set_run_ahead(0);
  }
  ~FreeRunning() { ops::set_run_ahead(before_); }
  FreeRunning(const FreeRunning&) = delete;
  FreeRunning& operator=(const FreeRunning&) = delete;

 private:
  int before_;
};

void check_ids(std::span<const std::int32_t> ids, int vocab) {
  if (ids.empty()) {
    throw UsageError("[infer.Sequence] there must be at least one token");
  }
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < vocab) continue;
    throw UsageError(
        fmt::format(
            "[infer.Sequence] a token id must be from 0 to {}, got {}",
            vocab - 1, id
        )
    );
  }
}

}  // namespace

Sequence::Sequence(
    const models::LoadedModel& model,
    KvType kv,
    QuantProducts products
)
    : model_(model),
      products_(products),
      caches_(model.decoder->make_caches(kv_dtype(kv, model.compute))) {}

nn::Pass Sequence::pass_for(std::size_t tokens) const {
  nn::Pass pass;
  pass.dtype = model_.compute;
  const bool exact = products_ == QuantProducts::exact ||
                     (products_ == QuantProducts::automatic && tokens > 1);
  pass.quantized = exact ? ops::QuantCompute::kExact : ops::QuantCompute::kInt8;
  return pass;
}

mx::array Sequence::hidden(std::span<const std::int32_t> ids) {
  const auto n = static_cast<int>(ids.size());
  std::vector<int> positions(ids.size());
  std::iota(positions.begin(), positions.end(), length_);
  nn::Pass pass = pass_for(ids.size());
  pass.positions = mx::array(positions.data(), {1, n}, mx::int32);
  pass.length = length_ + n;
  pass.caches = &caches_;
  length_ += n;
  return model_.decoder->hidden(mx::array(ids.data(), {1, n}, mx::int32), pass);
}

std::span<const float> Sequence::feed(
    std::span<const std::int32_t> ids,
    int chunk
) {
  const profile::Zone zone("infer.feed");
  const auto& config = model_.decoder->config();
  check_ids(ids, config.vocab);
  if (ids.size() > static_cast<std::size_t>(context() - length_)) {
    throw UsageError(
        fmt::format(
            "[infer.Sequence] the model's context is {} tokens, got {}",
            context(), static_cast<std::size_t>(length_) + ids.size()
        )
    );
  }
  const auto part = static_cast<std::size_t>(std::max(chunk, 1));
  while (ids.size() > part) {
    hidden(ids.first(part)).eval();
    ids = ids.subspan(part);
  }
  constexpr std::size_t kFew = 8;
  const FreeRunning free_running(ids.size() <= kFew);
  // Only the last token's logits are wanted.
  const auto h = hidden(ids);
  const int n = h.shape(1);
  const auto last =
      n == 1 ? h : mx::slice(h, {0, n - 1, 0}, {1, n, h.shape(2)});
  logits_ = model_.decoder->logits(last, pass_for(ids.size()));
  logits_.eval();
  return {logits_.data<float>(), static_cast<std::size_t>(config.vocab)};
}

std::size_t Sequence::kv_bytes() const {
  return std::accumulate(
      caches_.begin(), caches_.end(), std::size_t{0},
      [](std::size_t sum, const auto& c) { return sum + c->nbytes(); }
  );
}

}  // namespace hearth::infer
