// Keys and values on a CPU: memory of our own, written and read by our kernels.
#include <cmath>
#include <cstring>

#include "hearth/base/error.h"
#include "hearth/ops/attention/cpu_driver.h"
#include "hearth/ops/kv_cache/faces_impl.h"

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

std::shared_ptr<KvCache::Store> KvCache::copy_of_store(int length) const {
  auto out = make_store(capacity_for(length, 0));
  const auto copy = [&](const AlignedBuffer& from, AlignedBuffer& to) {
    if (from.size() == 0) return;
    const auto rows = static_cast<std::size_t>(store_->capacity);
    std::memcpy(
        to.data(), from.data(),
        from.size() / rows * static_cast<std::size_t>(length)
    );
  };
  copy(store_->k, out->k), copy(store_->v, out->v);
  copy(store_->k_scale, out->k_scale), copy(store_->v_scale, out->v_scale);
  return out;
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

// The step's tokens are counted already.
mx::array cached_attention_cpu(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const std::shared_ptr<KvCache>& cache,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  const int before = cache->length_ - q.shape(1);
  AttentionArgs a;
  a.heads = q.shape(2), a.kv_heads = cache->kv_heads_, a.dim = cache->dim_;
  a.queries = q.shape(1), a.keys = cache->length_;
  a.query_type = type_of(q.dtype()), a.kv_type = type_of(cache->dtype_);
  a.scale = options.scale > 0 ? options.scale
                              : 1 / std::sqrt(static_cast<float>(a.dim));
  a.softcap = options.softcap, a.window = options.window;
  a.causal = true, a.query_offset = before;
  return mx::array(
      q.shape(), q.dtype(),
      std::make_shared<CachedAttentionOp>(mx::to_stream(s), cache, before, a),
      {dense(q, s), dense(k, s), dense(v, s)}
  );
}

}  // namespace hearth::ops
