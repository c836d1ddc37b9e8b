#pragma once
// The forward pass on tiles, over bf16 keys and values. Scores are computed
// transposed, keys by queries, so that a query is a lane: neither its maximum
// nor its sum needs a reduction, and probabilities leave as the pairs that the
// product with the values (transposed too) reads. Queries are taken in strips
// of 32, whose scores stay in the first-level cache from one product to the
// next.
#include "hearth/kernels/attention/tile_scores_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

class TransposedForward {
  static constexpr long kRows = kAttentionQueryBlock;
  static constexpr long kKeys = 256;  // of one step
  static constexpr long kStrip = 32;  // queries, and keys of a piece
  static constexpr long kStrips = kRows / kStrip;

 public:
  TransposedForward(const AttentionArgs& args, void* scratch) : a_(args) {
    Carver carver(scratch);
    dim_ = round_up(a_.dim, TileDot::kDimGrain);
    q_ = carver.take<Bf16>(kRows * dim_);
    rows_ = carver.take<Bf16>(kRows * dim_);
    k_ = carver.take<Bf16>(kKeys * dim_);
    pairs_ = carver.take<Bf16>(kKeys * dim_);
    v_ = carver.take<Bf16>(kKeys * dim_);
    out_ = carver.take<float>(kRows * dim_);
    scores_ = carver.take<float>(kKeys * kStrip);
    probabilities_ = carver.take<Bf16>(kKeys * kStrip);
    used_ = carver.used();
  }
  std::size_t scratch_bytes() const { return used_; }

  void run(long batch, long head, long token, long tokens) {
    batch_ = batch;
    head_ = head;
    kv_head_ = head / (a_.heads / a_.kv_heads);
    token_ = token;
    count_ = tokens;
    unit_ = (a_.softcap > 0 ? 1.0f : a_.scale) * kLog2E;
    ids_ = DocumentIds(a_, batch);
    load_queries();
    const long first = a_.query_offset + token;
    const Stretch all = keys_seen(a_, first, first + tokens - 1);
    for (long at = all.lo; at < all.hi; at += kKeys) {
      const Stretch keys{at, least(at + kKeys, all.hi)};
      next_ = {keys.hi, least(keys.hi + kKeys, all.hi)};
      packed_ = false;
      for (long s = 0; s < tokens; s += kStrip) strip(keys, s);
    }
    finish();
  }

 private:
  void load_queries() {
    const auto type = a_.query_type;
    const long padded = round_up(count_, kStrip);
    load_rows(
        type, address(a_.q, type, batch_, token_, head_), a_.q.token, count_,
        a_.dim, rows_, padded, dim_
    );
    for (long s = 0; s < padded; s += kStrip) {
      const Rows<Bf16> rows{rows_ + s * dim_, dim_};
      pack_columns<TileDot>(rows, kStrip, dim_, q_ + s * dim_, kStrip);
    }
    for (long i = 0; i < padded; ++i) {
      max_[i] = kMinusInf;
      sum_[i] = 0;
    }
    for (bool& fresh : fresh_) fresh = true;
  }

  void pack(Stretch keys) {
    const long n = keys.hi - keys.lo, padded = round_up(n, kStrip);
    const auto rows = [&](const AttentionInput& x, Bf16* to) {
      load_rows(
          a_.kv_type, address(x, a_.kv_type, batch_, keys.lo, kv_head_),
          x.token, n, a_.dim, to, padded, dim_
      );
    };
    rows(a_.k, k_);
    rows(a_.v, rows_);
    pair_rows(Rows<Bf16>{rows_, dim_}, padded, dim_, pairs_);
    transpose(pairs_, padded / 2, dim_, dim_, v_, kKeys / 2);
    packed_ = true;
  }

  // Queries [s, s + 32) of the block against the keys of one step.
  void strip(Stretch keys, long s) {
    const auto [at, mixed, whole] =
        sight_of(a_, ids_, keys, token_ + s, least(kStrip, count_ - s), kStrip);
    if (at.empty()) return;
    if (!packed_) pack(keys);
    fetch();
    F32 top[2] = {splat(kMinusInf), splat(kMinusInf)};
    for (long r = at.lo; r < at.hi; r += kStrip) {
      const long key = keys.lo + r;
      TileDot::product<Into::kStore>(
          kStrip, kStrip, dim_, k_ + r * dim_, dim_, q_ + s * dim_, kStrip,
          scores_ + r * kStrip, kStrip
      );
      if (a_.softcap > 0) {
        cap_row(scores_ + r * kStrip, kStrip * kStrip, a_.scale, a_.softcap);
      }
      if (mixed || !whole.holds({key, key + kStrip})) mask(key, r, s);
      raise(scores_ + r * kStrip, top);
    }
    weigh(at, s, top);
    gather(at, s);
  }

  void mask(long key, long r, long s) {
    for (long i = 0; i < kStrip; ++i) {
      for (long half = 0; half < kStrip; half += kLanes) {
        float* scores = scores_ + (r + i) * kStrip + half;
        hide_unseen(a_, ids_, key + i, token_ + s + half, scores);
      }
    }
  }

  HEARTH_INLINE static void raise(const float* scores, F32 top[2]) {
    F32 a = top[0], b = top[1], c = a, d = b;
    for (long i = 0; i < kStrip; i += 2) {
      const float* row = scores + i * kStrip;
      a = max(a, load(row));
      b = max(b, load(row + kLanes));
      c = max(c, load(row + kStrip));
      d = max(d, load(row + kStrip + kLanes));
    }
    top[0] = max(a, c);
    top[1] = max(b, d);
  }

  // Turns the scores of a strip into probabilities relative to the greatest so
  // far, in pairs of keys, and rescales what was accumulated before to the same
  // reference.
  void weigh(Stretch at, long s, const F32 top[2]) {
    const F32 unit = splat(unit_);
    F32 down[2], sum[2] = {zero(), zero()};
    for (int h = 0; h < 2; ++h) {
      const long q = s + h * kLanes;
      const F32 before = load(max_ + q), now = max(before, top[h]);
      const F32 base = select(now == splat(kMinusInf), zero(), now * unit);
      const F32 factor = select(
          before == now, splat(1.0f), exp2<6>(fma(before, unit, neg(base)))
      );
      down[h] = neg(base);
      store(max_ + q, now);
      store(factor_ + h * kLanes, factor);
    }
    for (long r = at.lo; r < at.hi; r += 2) {
      const float* row = scores_ + r * kStrip;
      for (int h = 0; h < 2; ++h) {
        const F32 even = exp2<4>(fma(load(row + h * kLanes), unit, down[h]));
        const F32 odd =
            exp2<4>(fma(load(row + kStrip + h * kLanes), unit, down[h]));
        sum[h] += even + odd;
        store_pair(probabilities_ + r * kStrip + 2 * h * kLanes, even, odd);
      }
    }
    for (int h = 0; h < 2; ++h) {
      float* to = sum_ + s + h * kLanes;
      store(to, fma(load(to), load(factor_ + h * kLanes), sum[h]));
    }
  }

  // out^T = out^T factor + v^T p^T
  void gather(Stretch at, long s) {
    float* out = out_ + s * dim_;
    const Bf16* v = v_ + at.lo;
    const Bf16* p = probabilities_ + at.lo * kStrip;
    const long n = at.hi - at.lo;
    bool& fresh = fresh_[s / kStrip];
    if (fresh) {
      TileDot::product<Into::kStore>(
          dim_, kStrip, n, v, kKeys, p, kStrip, out, kStrip
      );
      fresh = false;
      return;
    }
    const F32 left = load(factor_), right = load(factor_ + kLanes);
    for (long d = 0; d < dim_; ++d) {
      float* row = out + d * kStrip;
      store(row, load(row) * left);
      store(row + kLanes, load(row + kLanes) * right);
    }
    TileDot::product<Into::kAdd>(
        dim_, kStrip, n, v, kKeys, p, kStrip, out, kStrip
    );
  }

  // Prefetches a share of the next step's rows, which lie too far apart for a
  // hardware prefetcher.
  void fetch() {
    const long share = kKeys * kStrip / round_up(count_, kStrip);
    const long end = least(next_.lo + share, next_.hi);
    const long bytes = a_.dim * item_size(a_.kv_type);
    for (; next_.lo < end; ++next_.lo) {
      const char* k = address(a_.k, a_.kv_type, batch_, next_.lo, kv_head_);
      const char* v = address(a_.v, a_.kv_type, batch_, next_.lo, kv_head_);
      for (long i = 0; i < bytes; i += 64) {
        __builtin_prefetch(k + i, 0, 2);
        __builtin_prefetch(v + i, 0, 2);
      }
    }
  }

  // Normalised rows to out, log-sum-exps to lse.
  void finish() {
    float* transposed = scores_;  // [kStrip][dim], as large as kKeys allows
    for (long s = 0; s < count_; s += kStrip) {
      const bool none = fresh_[s / kStrip];
      if (!none)
        transpose(out_ + s * dim_, dim_, kStrip, kStrip, transposed, dim_);
      for (long r = s; r < least(s + kStrip, count_); ++r) {
        const float sum = sum_[r];
        float* row = transposed + (r - s) * dim_;
        for (long i = 0; none && i < dim_; ++i) row[i] = 0;
        store_row(
            row, sum == 0 ? 0.0f : 1.0f / sum, a_.dim, a_.query_type, a_.out,
            batch_, token_ + r, head_
        );
        if (a_.lse == nullptr) continue;
        a_.lse[(batch_ * a_.heads + head_) * a_.queries + token_ + r] =
            sum == 0 ? kMinusInf : max_[r] * unit_ * kLn2 + __builtin_logf(sum);
      }
    }
  }

  static_assert(kAttentionMaxDim <= kKeys, "finish transposes rows in scores_");

  const AttentionArgs& a_;
  long dim_, batch_ = 0, head_ = 0, kv_head_ = 0, token_ = 0, count_ = 0;
  std::size_t used_;
  float unit_ = 0;
  DocumentIds ids_;
  bool packed_ = false;
  Stretch next_{};
  Bf16 *q_, *rows_, *k_, *pairs_, *v_, *probabilities_;
  float *out_, *scores_;
  bool fresh_[kStrips];  // strips that have accumulated nothing yet
  alignas(64) float max_[kRows];
  alignas(64) float sum_[kRows];
  alignas(64) float factor_[kStrip];
};

inline void transposed_forward_units(
    const AttentionArgs& a,
    long begin,
    long end,
    void* scratch
) {
  const long blocks = attention_blocks(a.queries, kAttentionQueryBlock);
  TransposedForward block(a, scratch);
  TileDot::enter();
  for (long unit = begin; unit < end; ++unit) {
    const long token = unit % blocks * kAttentionQueryBlock;
    block.run(
        unit / blocks / a.heads, unit / blocks % a.heads, token,
        least(kAttentionQueryBlock, a.queries - token)
    );
  }
  TileDot::leave();
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
