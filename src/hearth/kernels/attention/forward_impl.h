#pragma once
// The forward pass over one block of query rows, and its two uses: a block of
// one head's queries against all it sees (forward), and the few queries of all
// heads that share a kv head against one chunk of keys (decode).
#include "hearth/kernels/attention/mask_impl.h"
#include "hearth/kernels/attention/softmax_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

template <class Dot>
class ForwardBlock {
  using Elem = typename Dot::Elem;
  static constexpr long kRows = kAttentionQueryBlock;
  static constexpr long kKeys = 256;  // of one step
  static constexpr long kGrain = Dot::kGrain;

 public:
  ForwardBlock(const AttentionArgs& args, void* scratch) : a_(args) {
    Carver carver(scratch);
    dim_ = round_up(a_.dim, Dot::kDimGrain);
    q_ = carver.take<Elem>(kRows * dim_);
    out_ = carver.take<float>(kRows * dim_);
    rows_ = carver.take<Elem>(kKeys * dim_);
    k_ = carver.take<Elem>(kKeys * dim_);
    v_ = carver.take<Elem>(kKeys * dim_);
    scores_ = carver.take<float>(kGrain * kKeys);
    probabilities_ = carver.take<Elem>(kGrain * kKeys);
    used_ = carver.used();
  }
  std::size_t scratch_bytes() const { return used_; }

  // Chooses the rows: `tokens` consecutive queries of each of `heads` heads.
  void start(long batch, long head, long heads, long token, long tokens) {
    batch_ = batch;
    kv_head_ = head / (a_.heads / a_.kv_heads);
    count_ = heads * tokens;
    unit_ = (a_.softcap > 0 ? 1.0f : a_.scale) * kLog2E;
    for (long h = 0; h < heads; ++h) {
      const bool last = h + 1 == heads;
      const long padded = last ? round_up(count_, kGrain) - h * tokens : tokens;
      load_rows(
          a_.query_type, address(a_.q, a_.query_type, batch, token, head + h),
          a_.q.token, tokens, a_.dim, q_ + h * tokens * dim_, padded, dim_
      );
      for (long i = 0; i < tokens; ++i) {
        const long r = h * tokens + i;
        position_[r] = a_.query_offset + token + i;
        segment_[r] =
            a_.query_segments.data != nullptr
                ? a_.query_segments
                      .data[batch * a_.query_segments.batch + token + i]
                : 0;
        state_[r] = {kMinusInf, 0.0f};
      }
    }
    ids_ = a_.key_segments.data != nullptr
               ? a_.key_segments.data + batch * a_.key_segments.batch
               : nullptr;
    for (long i = 0; i < round_up(count_, kGrain) * dim_; ++i) out_[i] = 0;
  }

  // Goes through the keys of `within` that any row sees.
  void attend(Stretch within, long keys_a_step = kKeys) {
    const Stretch all = common(within, seen_by(0, count_));
    for (long at = all.lo; at < all.hi; at += keys_a_step) {
      const long next = least(at + keys_a_step, all.hi);
      after_ = {next, least(next + keys_a_step, all.hi)};
      step({at, next});
    }
  }

  // Normalised rows to out, log-sum-exps to lse.
  void finish(long head, long token) {
    for (long r = 0; r < count_; ++r) {
      const float sum = state_[r].sum;
      store_row(
          out_ + r * dim_, sum == 0 ? 0.0f : 1.0f / sum, a_.dim, a_.query_type,
          a_.out, batch_, token + r, head
      );
      if (a_.lse == nullptr) continue;
      a_.lse[(batch_ * a_.heads + head) * a_.queries + token + r] =
          log_sum(state_[r]);
    }
  }

  // [rows][2 + dim]: greatest score in powers of two, sum, sums of values.
  void leave_partials(float* to) const {
    for (long r = 0; r < count_; ++r, to += a_.dim + 2) {
      to[0] = state_[r].max * unit_;
      to[1] = state_[r].sum;
      store_row_of(out_ + r * dim_, 1.0f, a_.dim, to + 2);
    }
  }

 private:
  float log_sum(RowState s) const {
    if (s.sum == 0) return kMinusInf;
    return s.max * unit_ * kLn2 + __builtin_logf(s.sum);
  }

  Stretch seen_by(long row, long end) const {
    long first = position_[row], last = first;
    for (long r = row + 1; r < end; ++r) {
      first = least(first, position_[r]);
      last = most(last, position_[r]);
    }
    return keys_seen(a_, first, last);
  }

  void step(Stretch keys) {
    packed_ = false;
    share_ = (after_.hi - after_.lo) * kGrain / (2 * count_) + 1;
    for (long row = 0; row < count_; row += kGrain) {
      strip(keys, row, least(row + kGrain, count_));
    }
  }

  // Rows [row, end), at most kGrain of them, against keys of one step.
  void strip(Stretch keys, long row, long end) {
    const Stretch seen = common(seen_by(row, end), keys);
    if (seen.empty()) return;
    Stretch at = widened({seen.lo - keys.lo, seen.hi - keys.lo}, kGrain);
    bool partial = at.hi + keys.lo > keys.hi || !whole(row, end, at, keys.lo);
    if (ids_ != nullptr) {
      const Ids own = ids_of(segment_ + row, end - row);
      const long n = keys.hi - keys.lo;
      at = trimmed(at, kGrain, ids_ + keys.lo, n, own);
      if (at.empty()) return;
      const Ids theirs =
          ids_of(ids_ + keys.lo + at.lo, least(at.hi, n) - at.lo);
      partial |= own.lo != own.hi || theirs.lo != own.lo || theirs.hi != own.lo;
    }
    if (!packed_) pack(keys);
    const long m = end - row, n = at.hi - at.lo;
    fetch();
    Dot::template product<Into::kStore>(
        m, n, dim_, q_ + row * dim_, dim_, k_ + at.lo * Dot::kPair, kKeys,
        scores_ + at.lo, kKeys
    );
    float factor[kGrain];
    for (long r = 0; r < m; ++r) {
      float* s = scores_ + r * kKeys;
      if (scaled()) multiply_row(s + at.lo, n, k_scale_ + at.lo);
      if (a_.softcap > 0) cap_row(s + at.lo, n, a_.scale, a_.softcap);
      if (partial) {
        const long p = position_[row + r];
        mask_row(s, at, keys.lo, keys_seen(a_, p, p), ids_, segment_[row + r]);
      }
      const auto softmax =
          scaled() ? softmax_row<Dot, true> : softmax_row<Dot, false>;
      factor[r] = softmax(
          s + at.lo, n, unit_, v_scale_ + at.lo, state_[row + r],
          probabilities_ + r * kKeys + at.lo
      );
    }
    fetch();
    Dot::template product<Into::kScale>(
        m, dim_, n, probabilities_ + at.lo, kKeys, values_.from(at.lo).data,
        values_.stride, out_ + row * dim_, dim_, factor
    );
  }

  // Prefetches a share of the next step's rows. They lie too far apart for a
  // hardware prefetcher, and this step's products leave memory idle.
  void fetch() {
    const long end = least(after_.lo + share_, after_.hi);
    const long bytes = a_.dim * item_size(a_.kv_type);
    for (; after_.lo < end; ++after_.lo) {
      const long at = after_.lo;
      const char* k = address(a_.k, a_.kv_type, batch_, at, kv_head_);
      const char* v = address(a_.v, a_.kv_type, batch_, at, kv_head_);
      for (long i = 0; i < bytes; i += 64) {
        __builtin_prefetch(k + i, 0, 2);
        __builtin_prefetch(v + i, 0, 2);
      }
    }
  }

  bool whole(long row, long end, Stretch at, long origin) const {
    long first = position_[row], last = first;
    for (long r = row + 1; r < end; ++r) {
      first = least(first, position_[r]);
      last = most(last, position_[r]);
    }
    return keys_seen(a_, last, first).holds({at.lo + origin, at.hi + origin});
  }

  bool scaled() const { return a_.kv_type == AttentionType::kInt8; }

  void pack(Stretch keys) {
    const long n = keys.hi - keys.lo, padded = round_up(n, kGrain);
    const auto rows = [&](const AttentionInput& x) {
      const char* from = address(x, a_.kv_type, batch_, keys.lo, kv_head_);
      // With few queries copying would cost more than reading rows far apart.
      if (count_ <= kGrain) {
        return rows_in_place(
            a_.kv_type, from, x.token, n, a_.dim, rows_, padded, dim_
        );
      }
      load_rows(a_.kv_type, from, x.token, n, a_.dim, rows_, padded, dim_);
      return Rows<Elem>{rows_, dim_};
    };
    pack_columns<Dot>(rows(a_.k), padded, dim_, k_, kKeys);
    values_ = pair_rows(rows(a_.v), padded, dim_, v_);
    if (scaled()) {
      load_scales(a_.k_scale, keys, k_scale_);
      load_scales(a_.v_scale, keys, v_scale_);
    }
    packed_ = true;
  }

  void load_scales(const AttentionScales& x, Stretch keys, float* to) const {
    const float* from = x.data + batch_ * x.batch + kv_head_ * x.head;
    const long n = keys.hi - keys.lo;
    for (long i = 0; i < n; ++i) to[i] = from[(keys.lo + i) * x.token];
    for (long i = n; i < kKeys; ++i) to[i] = 0;
  }

  const AttentionArgs& a_;
  long dim_, batch_ = 0, kv_head_ = 0, count_ = 0;
  std::size_t used_;
  float unit_ = 0;
  const std::int32_t* ids_ = nullptr;
  bool packed_ = false;
  Elem *q_, *rows_, *k_, *v_, *probabilities_;
  Rows<Elem> values_{};  // as B
  Stretch after_{};
  long share_ = 0;
  float *out_, *scores_;
  long position_[kRows];
  std::int32_t segment_[kRows];
  RowState state_[kRows];
  alignas(64) float k_scale_[kKeys], v_scale_[kKeys];
};

template <class Dot>
void forward_units(
    const AttentionArgs& a,
    long begin,
    long end,
    void* scratch
) {
  const long blocks = attention_blocks(a.queries, kAttentionQueryBlock);
  ForwardBlock<Dot> block(a, scratch);
  Dot::enter();
  for (long unit = begin; unit < end; ++unit) {
    const long token = unit % blocks * kAttentionQueryBlock;
    const long head = unit / blocks % a.heads, batch = unit / blocks / a.heads;
    const long tokens = least(kAttentionQueryBlock, a.queries - token);
    block.start(batch, head, 1, token, tokens);
    block.attend({0, a.keys});
    block.finish(head, token);
  }
  Dot::leave();
}

template <class Dot>
void decode_units(
    const AttentionArgs& a,
    long begin,
    long end,
    float* partials,
    void* scratch
) {
  const long chunks = attention_decode_chunks(a), group = a.heads / a.kv_heads;
  const long floats = group * a.queries * (a.dim + 2);
  constexpr long kStep = 64;  // small, so that memory and products overlap
  ForwardBlock<Dot> block(a, scratch);
  Dot::enter();
  for (long unit = begin; unit < end; ++unit) {
    const long at = unit % chunks * kAttentionDecodeChunk;
    const long kv_head = unit / chunks % a.kv_heads;
    block.start(
        unit / chunks / a.kv_heads, kv_head * group, group, 0, a.queries
    );
    block.attend({at, at + kAttentionDecodeChunk}, kStep);
    block.leave_partials(partials + unit * floats);
  }
  Dot::leave();
}

// Joins the chunks of (batch, head) pairs [begin, end), first to last.
inline void combine_chunks(
    const AttentionArgs& a,
    long begin,
    long end,
    const float* partials
) {
  const long chunks = attention_decode_chunks(a), group = a.heads / a.kv_heads;
  const long row = a.dim + 2, unit = group * a.queries * row;
  alignas(64) float sum[kAttentionMaxDim];
  for (long bh = begin; bh < end; ++bh) {
    const long batch = bh / a.heads, head = bh % a.heads;
    const float* first = partials +
                         (batch * a.kv_heads + head / group) * chunks * unit +
                         head % group * a.queries * row;
    for (long i = 0; i < a.queries; ++i) {
      float greatest = kMinusInf, total = 0;
      for (long c = 0; c < chunks; ++c) {
        const float m = first[c * unit + i * row];
        greatest = m > greatest ? m : greatest;
      }
      for (long d = 0; d < a.dim; ++d) sum[d] = 0;
      for (long c = 0; c < chunks; ++c) {
        const float* from = first + c * unit + i * row;
        if (from[1] == 0) continue;
        const float weight = exp2_of(from[0] - greatest);
        total += weight * from[1];
        for (long d = 0; d < a.dim; ++d) sum[d] += weight * from[2 + d];
      }
      store_row(
          sum, total == 0 ? 0.0f : 1.0f / total, a.dim, a.query_type, a.out,
          batch, i, head
      );
      if (a.lse != nullptr) {
        a.lse[bh * a.queries + i] =
            total == 0 ? kMinusInf : greatest * kLn2 + __builtin_logf(total);
      }
    }
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
