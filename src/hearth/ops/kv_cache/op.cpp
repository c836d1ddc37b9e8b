#include "hearth/ops/kv_cache/op.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/kv_cache/faces_impl.h"

namespace hearth::ops {

KvCache::KvCache(int kv_heads, int dim, mx::Dtype dtype, int page)
    : kv_heads_(kv_heads), dim_(dim), dtype_(dtype), page_(page) {
  if (dtype != mx::int8) with_dtype("ops.KvCache", dtype, [](auto*) {});
}

int KvCache::capacity_for(int tokens, int now) const {
  if (page_ > 0) return (tokens + page_ - 1) / page_ * page_;
  return std::max(tokens, now > 0 ? 2 * now : 256);
}

std::shared_ptr<KvCache> KvCache::fork(int length) const {
  if (length < 0 || length > length_) {
    throw UsageError(
        fmt::format(
            "[ops.KvCache] cannot fork {} tokens of {}", length, length_
        )
    );
  }
  auto out = std::make_shared<KvCache>(kv_heads_, dim_, dtype_, page_);
  out->length_ = length;
  if (length == 0) return out;
  // MLX's arrays can be shared: who writes first gets a copy.
  out->k_ = k_, out->v_ = v_;
  if (store_) out->store_ = copy_of_store(length);
  return out;
}

// What lies behind the length is written over by the next step.
void KvCache::truncate(int length) {
  if (length < 0 || length > length_) {
    throw UsageError(
        fmt::format(
            "[ops.KvCache] cannot truncate {} tokens to {}", length_, length
        )
    );
  }
  length_ = length;
}

std::size_t KvCache::nbytes() const {
  if (k_) return k_->nbytes() + v_->nbytes();
  if (!store_) return 0;
  return store_->k.size() + store_->v.size() + store_->k_scale.size() +
         store_->v_scale.size();
}

mx::array cached_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const std::shared_ptr<KvCache>& cache,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  const auto refuse = [](const std::string& what) {
    throw UsageError("[ops.cached_attention] " + what);
  };
  if (q.ndim() != 4 || q.shape(0) != 1 || q.shape(3) != cache->dim_ ||
      q.shape(2) % cache->kv_heads_ != 0) {
    refuse(
        fmt::format(
            "q must be [1, tokens, a multiple of {}, {}], got [{}]",
            cache->kv_heads_, cache->dim_, fmt::join(q.shape(), ", ")
        )
    );
  }
  const mx::Shape rows{1, q.shape(1), cache->kv_heads_, cache->dim_};
  if (k.shape() != rows || v.shape() != rows) {
    refuse(fmt::format("k and v must be [{}]", fmt::join(rows, ", ")));
  }
  if (on_cpu(s) && cache->dtype_ != mx::int8 && cache->dtype_ != q.dtype()) {
    refuse("q must have the cache's dtype, or the cache must be int8");
  }
  const int before = cache->length_, after = before + q.shape(1);
  cache->length_ = after;
  if (on_cpu(s)) return cached_attention_cpu(q, k, v, cache, options, s);
  cache->append(cache->k_, k, before, s);
  cache->append(cache->v_, v, before, s);
  // What no query's window reaches is not read; a single query then sees all
  // that is.
  auto visible = options;
  int first = 0;
  if (options.window > 0) first = std::max(0, before - options.window + 1);
  if (q.shape(1) == 1) visible.window = 0;
  const auto seen = [&](const KvCache::Block& block) {
    return KvCache::rows_of(block, first, after, q.dtype(), s);
  };
  return attention(q, seen(*cache->k_), seen(*cache->v_), visible, s);
}

}  // namespace hearth::ops
