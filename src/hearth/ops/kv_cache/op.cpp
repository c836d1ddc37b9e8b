#include "hearth/ops/kv_cache/op.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/attention/driver.h"

namespace hearth::ops {
namespace {

using kernels::AttentionArgs;
using kernels::AttentionType;

AttentionType type_of(mx::Dtype t) {
  return t == mx::float32    ? AttentionType::kFloat32
         : t == mx::bfloat16 ? AttentionType::kBfloat16
                             : AttentionType::kInt8;
}

MemoryZone zone() {
  return MemoryZone::named("kv cache");
}

}  // namespace

KvCache::KvCache(int kv_heads, int dim, mx::Dtype dtype, int page)
    : kv_heads_(kv_heads), dim_(dim), dtype_(dtype), page_(page) {
  if (dtype != mx::int8) with_dtype("ops.KvCache", dtype, [](auto*) {});
}

std::shared_ptr<KvCache::Store> KvCache::make_store(int capacity) const {
  const auto rows =
      static_cast<std::size_t>(capacity) * static_cast<std::size_t>(kv_heads_);
  const std::size_t bytes =
      rows * static_cast<std::size_t>(dim_) * mx::size_of(dtype_);
  auto store = std::make_shared<Store>();
  store->k = AlignedBuffer(zone(), bytes);
  store->v = AlignedBuffer(zone(), bytes);
  if (dtype_ == mx::int8) {
    store->k_scale = AlignedBuffer(zone(), rows * sizeof(float));
    store->v_scale = AlignedBuffer(zone(), rows * sizeof(float));
  }
  store->capacity = capacity;
  return store;
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
  if (k_) {
    const mx::Shape start(4, 0);
    const mx::Shape stop{1, length, kv_heads_, dim_};
    out->k_ = mx::slice(*k_, start, stop);
    out->v_ = mx::slice(*v_, start, stop);
    return out;
  }
  out->store_ = make_store(capacity_for(length, 0));
  const auto copy = [&](const AlignedBuffer& from, AlignedBuffer& to) {
    if (from.size() == 0) return;
    const auto rows = static_cast<std::size_t>(store_->capacity);
    std::memcpy(
        to.data(), from.data(),
        from.size() / rows * static_cast<std::size_t>(length)
    );
  };
  copy(store_->k, out->store_->k), copy(store_->v, out->store_->v);
  copy(store_->k_scale, out->store_->k_scale);
  copy(store_->v_scale, out->store_->v_scale);
  return out;
}

void KvCache::truncate(int length) {
  if (length < 0 || length > length_) {
    throw UsageError(
        fmt::format(
            "[ops.KvCache] cannot truncate {} tokens to {}", length_, length
        )
    );
  }
  length_ = length;
  if (!k_) return;
  const mx::Shape start(4, 0);
  const mx::Shape stop{1, length, kv_heads_, dim_};
  k_ = mx::slice(*k_, start, stop);
  v_ = mx::slice(*v_, start, stop);
}

std::size_t KvCache::nbytes() const {
  if (k_) return k_->nbytes() + v_->nbytes();
  if (!store_) return 0;
  return store_->k.size() + store_->v.size() + store_->k_scale.size() +
         store_->v_scale.size();
}

// q, k, v -> out
class CachedAttentionOp : public CpuOp {
 public:
  CachedAttentionOp(
      mx::Stream s,
      std::shared_ptr<KvCache> cache,
      int before,
      AttentionArgs args
  )
      : CpuOp(s), cache_(std::move(cache)), before_(before), args_(args) {}
  HEARTH_OP_NAME(CachedAttentionOp)

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const int after = before_ + in[0].shape(1);
    auto old = cache_->store_;
    if (!old || old->capacity < after) {
      cache_->store_ = cache_->make_store(
          cache_->capacity_for(after, old ? old->capacity : 0)
      );
    } else {
      old = nullptr;
    }
    allocate(out);
    AttentionArgs a = args_;
    auto store = cache_->store_;
    const std::ptrdiff_t row = a.kv_heads * a.dim;
    a.q = {in[0].data<void>(), 0, a.heads * a.dim, a.dim};
    a.out = {out[0].data<void>(), 0, a.heads * a.dim, a.dim};
    a.k = {store->k.data(), 0, row, a.dim};
    a.v = {store->v.data(), 0, row, a.dim};
    a.k_scale = {store->k_scale.as<float>().data(), 0, a.kv_heads, 1};
    a.v_scale = {store->v_scale.as<float>().data(), 0, a.kv_heads, 1};
    check_attention("ops.cached_attention", a);
    const auto room = scratch(
        stream(), cached_attention_scratch({&a, 1}, current_execution())
    );
    launch([a, store, old, room, before = before_, k = in[1].data<void>(),
            v = in[2].data<void>()](const Execution& run) noexcept {
      if (old) copy(*old, *store);
      append(a, k, store->k.data(), store->k_scale, before, run);
      append(a, v, store->v.data(), store->v_scale, before, run);
      cached_attention({&a, 1}, run, room->data());
    });
  }

 private:
  std::shared_ptr<KvCache> cache_;
  int before_;
  AttentionArgs args_;

  static void copy(const KvCache::Store& from, KvCache::Store& to) noexcept {
    const auto move = [](const AlignedBuffer& a, AlignedBuffer& b) {
      if (a.size() > 0) std::memcpy(b.data(), a.data(), a.size());
    };
    move(from.k, to.k), move(from.v, to.v);
    move(from.k_scale, to.k_scale), move(from.v_scale, to.v_scale);
  }

  static void append(
      const AttentionArgs& a,
      const void* rows,
      std::byte* to,
      AlignedBuffer& scales,
      int before,
      const Execution& run
  ) noexcept {
    const std::ptrdiff_t count = a.queries * a.kv_heads;
    const std::ptrdiff_t first = before * a.kv_heads;
    if (a.kv_type != AttentionType::kInt8) {
      const std::ptrdiff_t item = a.kv_type == AttentionType::kFloat32 ? 4 : 2;
      std::memcpy(
          to + first * a.dim * item, rows,
          static_cast<std::size_t>(count * a.dim * item)
      );
      return;
    }
    run.kernels.attention->quantize(
        {.type = a.query_type,
         .from = rows,
         .to = reinterpret_cast<std::int8_t*>(to) + first * a.dim,
         .scales = scales.as<float>().data() + first,
         .dim = a.dim,
         .from_stride = a.dim,
         .to_stride = a.dim},
        0, count
    );
  }
};

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
  const int before = cache->length_;
  cache->length_ += q.shape(1);
  if (!on_cpu(s)) {
    cache->k_ = cache->k_ ? mx::concatenate({*cache->k_, k}, 1, s) : k;
    cache->v_ = cache->v_ ? mx::concatenate({*cache->v_, v}, 1, s) : v;
    return attention(q, *cache->k_, *cache->v_, options, s);
  }
  AttentionArgs a;
  a.heads = q.shape(2), a.kv_heads = cache->kv_heads_, a.dim = cache->dim_;
  a.queries = q.shape(1), a.keys = before + q.shape(1);
  a.query_type = type_of(q.dtype()), a.kv_type = type_of(cache->dtype_);
  a.scale = options.scale > 0 ? options.scale
                              : 1 / std::sqrt(static_cast<float>(a.dim));
  a.softcap = options.softcap, a.window = options.window;
  a.causal = true, a.query_offset = before;
  if (a.kv_type != AttentionType::kInt8 && a.kv_type != a.query_type) {
    refuse("q must have the cache's dtype, or the cache must be int8");
  }
  return mx::array(
      q.shape(), q.dtype(),
      std::make_shared<CachedAttentionOp>(mx::to_stream(s), cache, before, a),
      {dense(q, s), dense(k, s), dense(v, s)}
  );
}

}  // namespace hearth::ops
