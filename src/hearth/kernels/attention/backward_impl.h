#pragma once
// The backward pass of one (batch, kv head). Scores are computed transposed,
// keys by queries, so that probabilities and score gradients are at once the
// left operands of dv and dk; the same gradients, paired, are the right operand
// of the transposed dq. Queries are taken in chunks; a chunk's dq is finished
// with it, while dk and dv accumulate over all of them.
#include "hearth/kernels/attention/mask_impl.h"
#include "hearth/kernels/attention/softmax_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

template <class T>
float dot_rows_of(const void* x, const void* y, long n) {
  const T *a = static_cast<const T*>(x), *b = static_cast<const T*>(y);
  F32 sum = zero();
  long i = 0;
  for (; i + kLanes <= n; i += kLanes) sum = fma(load(a + i), load(b + i), sum);
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    sum = fma(load(a + i, rest), load(b + i, rest), sum);
  }
  return reduce_add(sum);
}

// Two terms of each query's probabilities and score gradients: its log-sum-exp
// in powers of two, and the product of its output with the output's gradient.
// There are `count` queries and padding up to `size`; padding, and a query that
// saw nothing, must yield no probability.
inline void load_row_terms(
    const AttentionGradArgs& g,
    long batch,
    long head,
    long token,
    long count,
    long size,
    float* lse,
    float* delta
) {
  const AttentionArgs& a = g.forward;
  const auto type = a.query_type;
  const AttentionInput out{a.out.data, a.out.batch, a.out.token, a.out.head};
  const auto dot =
      type == AttentionType::kFloat32 ? dot_rows_of<float> : dot_rows_of<Bf16>;
  const float* from = a.lse + (batch * a.heads + head) * a.queries + token;
  for (long i = 0; i < size; ++i) {
    const bool there = i < count;
    lse[i] = there && from[i] != kMinusInf ? from[i] * kLog2E : -kMinusInf;
    delta[i] = there ? dot(address(out, type, batch, token + i, head),
                           address(g.dout, type, batch, token + i, head), a.dim)
                     : 0.0f;
  }
}

template <class Dot>
class BackwardUnit {
  using Elem = typename Dot::Elem;
  static constexpr long kGrain = Dot::kGrain;
  // Tiles are loaded and stored once a product, so they want deeper ones.
  static constexpr long kQueries = kGrain > 16 ? 256 : 128, kKeys = 128;

 public:
  BackwardUnit(const AttentionGradArgs& args, void* scratch)
      : g_(args), a_(args.forward) {
    Carver carver(scratch);
    dim_ = round_up(a_.dim, Dot::kDimGrain);
    padded_keys_ = round_up(a_.keys, kKeys);
    const long all = padded_keys_ * dim_, some = kQueries * dim_;
    k_ = carver.take<Elem>(all);
    v_ = carver.take<Elem>(all);
    k_transposed_ = carver.take<Elem>(all);
    dk_ = carver.take<float>(all);
    dv_ = carver.take<float>(all);
    q_rows_ = carver.take<Elem>(some);
    q_columns_ = carver.take<Elem>(some);
    q_pairs_ = carver.take<Elem>(some);
    o_rows_ = carver.take<Elem>(some);
    o_columns_ = carver.take<Elem>(some);
    o_pairs_ = carver.take<Elem>(some);
    dq_transposed_ = carver.take<float>(some);
    dq_ = carver.take<float>(some);
    scores_ = carver.take<float>(kGrain * kQueries);
    products_ = carver.take<float>(kGrain * kQueries);
    probabilities_ = carver.take<Elem>(kGrain * kQueries);
    slopes_ = carver.take<Elem>(kKeys * kQueries);
    slope_pairs_ =
        Dot::kPair == 1 ? slopes_ : carver.take<Elem>(kKeys * kQueries);
    used_ = carver.used();
  }
  std::size_t scratch_bytes() const { return used_; }

  void run(long batch, long kv_head) {
    batch_ = batch;
    kv_head_ = kv_head;
    unit_ = (a_.softcap > 0 ? 1.0f : a_.scale) * kLog2E;
    ids_ = DocumentIds(a_, batch);
    load_keys();
    const long group = a_.heads / a_.kv_heads;
    for (long h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      for (long token = 0; token < a_.queries; token += kQueries) {
        chunk(h, token, least(kQueries, a_.queries - token));
      }
    }
    for (long j = 0; j < a_.keys; ++j) {
      store_row(
          dk_ + j * dim_, a_.scale, a_.dim, a_.kv_type, g_.dk, batch, j, kv_head
      );
      store_row(
          dv_ + j * dim_, 1.0f, a_.dim, a_.kv_type, g_.dv, batch, j, kv_head
      );
    }
  }

 private:
  void load_keys() {
    const auto load_all = [&](const AttentionInput& x, Elem* to) {
      load_rows(
          a_.kv_type, address(x, a_.kv_type, batch_, 0, kv_head_), x.token,
          a_.keys, a_.dim, to, padded_keys_, dim_
      );
    };
    load_all(a_.k, k_);
    load_all(a_.v, v_);
    for (long j = 0; j < padded_keys_; j += kKeys) {
      const Rows<Elem> rows{k_ + j * dim_, dim_};
      transpose(
          pair_rows(rows, kKeys, dim_, q_pairs_).data, kKeys / Dot::kPair, dim_,
          dim_, k_transposed_ + j * dim_, kKeys / Dot::kPair
      );
    }
    for (long i = 0; i < padded_keys_ * dim_; ++i) dk_[i] = dv_[i] = 0;
  }

  // `n` queries of one head from `token` on.
  void chunk(long head, long token, long n) {
    token_ = token;
    count_ = n;
    load_queries(head);
    for (long i = 0; i < dim_ * kQueries; ++i) dq_transposed_[i] = 0;
    const long first = a_.query_offset + token;
    const Stretch keys = keys_seen(a_, first, first + n - 1);
    for (long j = keys.lo / kKeys * kKeys; j < keys.hi; j += kKeys) {
      key_block(j);
    }
    transpose(dq_transposed_, dim_, kQueries, kQueries, dq_, dim_);
    for (long i = 0; i < n; ++i) {
      store_row(
          dq_ + i * dim_, a_.scale, a_.dim, a_.query_type, g_.dq, batch_,
          token + i, head
      );
    }
  }

  void load_queries(long head) {
    const auto type = a_.query_type;
    const auto rows = [&](const AttentionInput& x, Elem* to) {
      load_rows(
          type, address(x, type, batch_, token_, head), x.token, count_, a_.dim,
          to, kQueries, dim_
      );
      return Rows<Elem>{to, dim_};
    };
    const Rows<Elem> q = rows(a_.q, q_rows_), o = rows(g_.dout, o_rows_);
    pack_columns<Dot>(q, kQueries, dim_, q_columns_, kQueries);
    pack_columns<Dot>(o, kQueries, dim_, o_columns_, kQueries);
    q_right_ = pair_rows(q, kQueries, dim_, q_pairs_);
    o_right_ = pair_rows(o, kQueries, dim_, o_pairs_);
    load_row_terms(g_, batch_, head, token_, count_, kQueries, lse_, delta_);
  }

  // Columns of this chunk whose queries see some key of [first, end).
  Stretch seeing(long first, long end) const {
    return queries_meeting(a_, ids_, token_, count_, first, end, kGrain);
  }

  void key_block(long first) {
    const long end = least(first + kKeys, a_.keys);
    const Stretch at = seeing(first, end);
    if (at.empty()) return;
    Stretch rows{kKeys, 0};
    for (long row = 0; row < end - first; row += kGrain) {
      const Stretch own = seeing(first + row, least(first + row + kGrain, end));
      if (own.empty()) {
        clear_slopes(row, at);
        continue;
      }
      clear_slopes(row, {at.lo, own.lo});
      clear_slopes(row, {own.hi, at.hi});
      strip(first, row, own);
      rows = {least(rows.lo, row), row + kGrain};
    }
    if (rows.empty()) return;
    Dot::template product<Into::kAdd>(
        dim_, at.hi - at.lo, rows.hi - rows.lo,
        k_transposed_ + first * dim_ + rows.lo, kKeys,
        slope_pairs_ + rows.lo * kQueries + at.lo * Dot::kPair, kQueries,
        dq_transposed_ + at.lo, kQueries
    );
  }

  void clear_slopes(long row, Stretch at) {
    if (at.empty()) return;
    for (long r = row; r < row + kGrain; r += Dot::kPair) {
      Elem* to = slope_pairs_ + r * kQueries;
      for (long i = at.lo * Dot::kPair; i < at.hi * Dot::kPair; ++i) {
        to[i] = Elem{};
      }
    }
  }

  // kGrain keys from first + row on against the queries in columns `at`.
  void strip(long first, long row, Stretch at) {
    const long key = first + row, n = at.hi - at.lo;
    Dot::template product<Into::kStore>(
        kGrain, n, dim_, k_ + key * dim_, dim_, q_columns_ + at.lo * Dot::kPair,
        kQueries, scores_ + at.lo, kQueries
    );
    Dot::template product<Into::kStore>(
        kGrain, n, dim_, v_ + key * dim_, dim_, o_columns_ + at.lo * Dot::kPair,
        kQueries, products_ + at.lo, kQueries
    );
    const bool partial = !whole(key, at);
    for (long r = 0; r < kGrain; ++r) {
      float* s = scores_ + r * kQueries;
      if (a_.softcap > 0) cap_row(s + at.lo, n, a_.scale, a_.softcap);
      if (partial) mask_key(s, key + r, at);
    }
    slopes(row, at);
    Dot::template product<Into::kAdd>(
        kGrain, dim_, n, probabilities_ + at.lo, kQueries,
        o_right_.from(at.lo).data, o_right_.stride, dv_ + key * dim_, dim_
    );
    Dot::template product<Into::kAdd>(
        kGrain, dim_, n, slopes_ + row * kQueries + at.lo, kQueries,
        q_right_.from(at.lo).data, q_right_.stride, dk_ + key * dim_, dim_
    );
  }

  // Whether every query of the columns sees every key of the strip.
  bool whole(long key, Stretch at) const {
    return sees_all(a_, ids_, token_ + at.lo, at.hi - at.lo, key, key + kGrain);
  }

  void mask_key(float* s, long key, Stretch at) const {
    Stretch seen{0, 0};
    if (key < a_.keys) seen = queries_seeing(a_, key, key);
    seen.hi = least(seen.hi, token_ + count_);
    const std::int32_t id =
        ids_.keys != nullptr && key < a_.keys ? ids_.keys[key] : 0;
    mask_row(s, at, token_, seen, ids_.queries, id);
  }

  void slopes(long row, Stretch at) {
    const auto rows =
        a_.softcap > 0 ? gradient_rows<Dot, true> : gradient_rows<Dot, false>;
    for (long r = 0; r < kGrain; r += 2) {
      const long here = r * kQueries + at.lo, next = here + kQueries;
      const long block = row * kQueries;
      const float* s[2] = {scores_ + here, scores_ + next};
      const float* dp[2] = {products_ + here, products_ + next};
      Elem* p[2] = {probabilities_ + here, probabilities_ + next};
      Elem* ds[2] = {slopes_ + block + here, slopes_ + block + next};
      rows(
          s, dp, at.hi - at.lo, lse_ + at.lo, delta_ + at.lo, unit_, a_.softcap,
          p, ds, slope_pairs_ + (row + r) * kQueries + at.lo * Dot::kPair
      );
    }
  }

  const AttentionGradArgs& g_;
  const AttentionArgs& a_;
  long dim_, padded_keys_, batch_ = 0, kv_head_ = 0, token_ = 0, count_ = 0;
  std::size_t used_;
  float unit_ = 0;
  DocumentIds ids_;
  Elem *k_, *v_, *k_transposed_;
  Elem *q_rows_, *q_columns_, *q_pairs_, *o_rows_, *o_columns_, *o_pairs_;
  Rows<Elem> q_right_{}, o_right_{};  // as B
  Elem *probabilities_, *slopes_, *slope_pairs_;
  float *dk_, *dv_, *dq_transposed_, *dq_, *scores_, *products_;
  alignas(64) float lse_[kQueries];
  alignas(64) float delta_[kQueries];
};

template <class Dot>
void backward_units(
    const AttentionGradArgs& g,
    long begin,
    long end,
    void* scratch
) {
  BackwardUnit<Dot> unit(g, scratch);
  Dot::enter();
  for (long i = begin; i < end; ++i) {
    unit.run(i / g.forward.kv_heads, i % g.forward.kv_heads);
  }
  Dot::leave();
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
