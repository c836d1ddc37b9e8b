#pragma once
// The backward pass of one (batch, kv head) on tiles, for heads of up to 64.
// Scores are computed transposed, keys by queries, in pieces of 32 by 32:
// probabilities and score gradients are at once the left operands of dv and dk,
// and the same gradients, paired, the right one of the transposed dq. Queries
// are taken in chunks; a chunk's dq is finished with it, while dk and dv
// accumulate over all of them. Every operand lies tile after tile.
//
// As in the forward pass, the products of the next piece's scores are spread
// among the vector work of this one.
#include "hearth/kernels/attention/backward_impl.h"
#include "hearth/kernels/attention/tile_forms_impl.h"
#include "hearth/kernels/attention/tile_scores_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

class TileBackward {
  static constexpr long kTile = kTileElements, kSums = kTileSums;
  static constexpr long kPiece = 32;                  // keys, and queries
  static constexpr long kQueries = 256;               // of a chunk
  static constexpr long kBlocks = kQueries / kPiece;  // of a chunk
  static constexpr long kPieces = 4;                  // that dq is summed over
  static constexpr int kPairs = kPiece / 2;
  static constexpr int kPrefetches = 4;  // with each piece

 public:
  TileBackward(const AttentionGradArgs& args, void* scratch)
      : g_(args), a_(args.forward), depth_(depth_of(a_)), dim_(32 * depth_) {
    Carver carver(scratch);
    padded_keys_ = round_up(a_.keys, kPieces * kPiece);
    const long all = padded_keys_ * dim_, some = kQueries * dim_;
    k_ = carver.take<Bf16>(all);
    v_ = carver.take<Bf16>(all);
    k_transposed_ = carver.take<Bf16>(all);
    dk_ = carver.take<float>(all);
    dv_ = carver.take<float>(all);
    q_columns_ = carver.take<Bf16>(some);
    o_columns_ = carver.take<Bf16>(some);
    q_pairs_ = carver.take<Bf16>(some);
    o_pairs_ = carver.take<Bf16>(some);
    dq_ = carver.take<float>(some);
    scores_ = carver.take<float>(2 * kPiece * kPiece);
    products_ = carver.take<float>(2 * kPiece * kPiece);
    probabilities_ = carver.take<Bf16>(kPiece * kQueries);
    slopes_ = carver.take<Bf16>(kPiece * kQueries);
    slope_pairs_ = carver.take<Bf16>(kPieces * kPiece * kQueries);
    used_ = carver.used();
  }
  std::size_t scratch_bytes() const { return used_; }

  // With `more` it prefetches the rows of the next kv head meanwhile.
  void run(long batch, long kv_head, bool more) {
    batch_ = batch;
    kv_head_ = kv_head;
    unit_ = (a_.softcap > 0 ? 1.0f : a_.scale) * kLog2E;
    ids_ = DocumentIds(a_, batch);
    load_keys();
    const long group = a_.heads / a_.kv_heads;
    for (long h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      for (long token = 0; token < a_.queries; token += kQueries) {
        const bool last = token + kQueries >= a_.queries;
        prefetch_.forget();
        if (!last)
          expect_queries(batch, h, token + kQueries);
        else if ((h + 1) % group != 0)
          expect_queries(batch, h + 1, 0);
        else
          expect_end(more);
        chunk(h, token, least(kQueries, a_.queries - token));
      }
    }
    for (long j = 0; j < a_.keys; j += 16) {
      const long n = least(16, a_.keys - j);
      const auto put = [&](const float* sums, float by, const auto& to) {
        store_straight(
            sums + j * dim_, by, a_.dim, row_of(to, batch, j, kv_head),
            to.token * 2, n
        );
      };
      put(dk_, a_.scale, g_.dk);
      put(dv_, 1.0f, g_.dv);
    }
  }

 private:
  void expect_queries(long batch, long head, long token) {
    const long n = least(kQueries, a_.queries - token);
    const auto add = [&](const AttentionInput& x) {
      prefetch_.add(TokenRows(x, a_, batch, token, head, n));
    };
    add(out());
    add(g_.dout);
    add(a_.q);
  }
  // Notes the rows to prefetch: the last of this unit, the first of the next.
  void expect_end(bool more) {
    if (more) {
      const bool next_batch = kv_head_ + 1 == a_.kv_heads;
      const long batch = batch_ + (next_batch ? 1 : 0);
      const long kv_head = next_batch ? 0 : kv_head_ + 1;
      expect_queries(batch, kv_head * (a_.heads / a_.kv_heads), 0);
      prefetch_.add(TokenRows(a_.v, a_, batch, 0, kv_head, a_.keys));
      prefetch_.add(TokenRows(a_.k, a_, batch, 0, kv_head, a_.keys));
    }
    const auto add = [&](const AttentionOutput& x) {
      prefetch_.add(row_of(x, batch_, 0, kv_head_), x.token * 2, a_.keys);
    };
    add(g_.dk);
    add(g_.dv);
  }
  AttentionInput out() const {
    return {a_.out.data, a_.out.batch, a_.out.token, a_.out.head};
  }

  void load_keys() {
    const TokenRows k(a_.k, a_, batch_, 0, kv_head_, a_.keys);
    const TokenRows v(a_.v, a_, batch_, 0, kv_head_, a_.keys);
    Bounded keys, values;
    for (long j = 0; j < a_.keys; j += kPiece) {
      for (long half = j; half < j + kPiece; half += 16) {
        rows_left(k, half, depth_, k_ + half * dim_, keys);
        rows_left(v, half, depth_, v_ + half * dim_, values);
      }
      transposed_rows_left(k, j, depth_, k_transposed_ + j * dim_);
    }
    bounded_keys_ = keys && a_.scale < 0x1p33f;
    for (long i = 0; i < padded_keys_ * dim_; i += kLanes) {
      store(dk_ + i, zero());
      store(dv_ + i, zero());
    }
  }

  // `n` queries of one head from `token` on.
  void chunk(long head, long token, long n) {
    token_ = token;
    count_ = n;
    load_queries(head);
    for (long i = 0; i < kQueries * dim_; i += kLanes) store(dq_ + i, zero());
    const long first = a_.query_offset + token;
    const Stretch keys = keys_seen(a_, first, first + n - 1);
    prefetch_.add(row_of(g_.dq, batch_, token, head), g_.dq.token * 2, n);
    prefetch_.spread(
        (keys.hi - keys.lo) / kPiece * (n / kPiece) / 2 * kPrefetches
    );
    constexpr long kStep = kPieces * kPiece;
    for (long j = keys.lo / kStep * kStep; j < keys.hi; j += kStep) {
      depth_ == 1 ? key_block<1>(j) : key_block<2>(j);
    }
    for (long i = 0; i < n; i += 16) {
      store_transposed(
          dq_ + i * dim_, splat(a_.scale), a_.dim,
          row_of(g_.dq, batch_, token + i, head), g_.dq.token * 2,
          least(16, n - i)
      );
    }
  }

  void load_queries(long head) {
    const TokenRows q(a_.q, a_, batch_, token_, head, count_);
    const TokenRows o(g_.dout, a_, batch_, token_, head, count_);
    Bounded queries, slopes;
    for (long i = 0; i < count_; i += kPiece) {
      for (long half = i; half < i + kPiece; half += 16) {
        transposed_rows_right(
            q, half, depth_, q_columns_ + half * dim_, queries
        );
        transposed_rows_right(
            o, half, depth_, o_columns_ + half * dim_, slopes
        );
      }
      rows_right(q, i, depth_, q_pairs_ + i * dim_);
      rows_right(o, i, depth_, o_pairs_ + i * dim_);
    }
    bounded_ = bounded_keys_ && queries;
    load_row_terms(g_, batch_, head, token_, count_, kQueries, lse_, delta_);
  }

  // Blocks of this chunk's queries that see some key of [first, end).
  Stretch seeing(long first, long end) const {
    const Stretch at =
        queries_meeting(a_, ids_, token_, count_, first, end, kPiece);
    return {at.lo / kPiece, at.hi / kPiece};
  }

  template <int kDepth>
  void key_block(long first) {
    Stretch at[kPieces], any{kBlocks, 0};
    for (long p = 0; p < kPieces; ++p) {
      const long key = first + p * kPiece;
      at[p] = {0, 0};
      if (key < a_.keys) at[p] = seeing(key, least(key + kPiece, a_.keys));
      if (at[p].empty()) continue;
      strip<kDepth>(key, p, at[p]);
      any = {least(any.lo, at[p].lo), most(any.hi, at[p].hi)};
    }
    for (long b = any.lo; b < any.hi; ++b) {
      for (int half = 0; half < kDepth; ++half)
        gather_dq<kDepth>(first, at, b, half);
    }
  }

  // 32 keys from `key` on against the queries of blocks `at`.
  template <int kDepth>
  void strip(long key, long p, Stretch at) {
    const Bf16 *k = k_ + key * dim_, *v = v_ + key * dim_;
    Beside beside{k, v};
    beside.look_at(*this, at.lo);
    for (int i = 0; i < kPairs; ++i) beside.advance<kDepth>(i);
    beside.end<kDepth>();
    for (long b = at.lo; b < at.hi; ++b) {
      float* scores = scores_ + b % 2 * kPiece * kPiece;
      if (a_.softcap > 0) {
        cap_row(scores, kPiece * kPiece, a_.scale, a_.softcap);
      }
      const long query = token_ + b * kPiece;
      if (!sees_all(a_, ids_, query, kPiece, key, key + kPiece)) {
        hide(key, query, scores);
      }
      beside.look_at(*this, b + 1 < at.hi ? b + 1 : kBlocks);
      weigh<kDepth>(p, b, beside);
      beside.end<kDepth>();
    }
    for (int half = 0; half < kDepth; ++half) {
      gather<kDepth>(probabilities_, o_pairs_, dv_ + key * dim_, at, half);
      gather<kDepth>(slopes_, q_pairs_, dk_ + key * dim_, at, half);
    }
  }

  void hide(long key, long query, float* scores) const {
    for (long i = 0; i < kPiece; ++i) {
      for (long half = 0; half < 2; ++half) {
        hide_unseen(
            a_, ids_, key + i, query + half * 16,
            scores + (i / 16 * 2 + half) * kSums + i % 16 * kLanes
        );
      }
    }
  }

  // The products of a piece: K with queries, V with their gradients, each two
  // by two tiles that are stored one after the other.
  struct Beside {
    const Bf16 *k, *v;
    const Bf16 *q = nullptr, *o = nullptr;  // null: no such piece
    float *scores = nullptr, *products = nullptr;

    void look_at(const TileBackward& t, long b) {
      const bool none = b >= kBlocks;
      q = none ? nullptr : t.q_columns_ + b * kPiece * t.dim_;
      o = t.o_columns_ + b * kPiece * t.dim_;
      scores = t.scores_ + b % 2 * kPiece * kPiece;
      products = t.products_ + b % 2 * kPiece * kPiece;
    }
    // The share of pair `i` of 16: scores in the first half.
    template <int kDepth>
    HEARTH_INLINE void advance(int i) const {
      if (q == nullptr) return;
      if (i < 8) return step<kDepth>(i, k, q);
      if (i == 8) put(scores);
      step<kDepth>(i - 8, v, o);
    }
    template <int kDepth>
    HEARTH_INLINE void end() const {
      if (q != nullptr) put(products);
    }

   private:
    // One of the eight products.
    template <int kDepth>
    HEARTH_INLINE static void step(int i, const Bf16* left, const Bf16* right) {
      if (i >= 4 * kDepth) return;
      const long d = i / 4 * kTile;
      if (i == 0) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      }
      switch (i % 4) {
        case 0:
          _tile_loadd(4, left + d, 64);
          _tile_loadd(6, right + d, 64);
          _tile_dpbf16ps(0, 4, 6);
          break;
        case 1:
          _tile_loadd(7, right + kDepth * kTile + d, 64);
          _tile_dpbf16ps(1, 4, 7);
          break;
        case 2:
          _tile_loadd(5, left + kDepth * kTile + d, 64);
          _tile_dpbf16ps(2, 5, 6);
          break;
        default:
          _tile_dpbf16ps(3, 5, 7);
      }
    }
    HEARTH_INLINE static void put(float* to) {
      _tile_stored(0, to, 64);
      _tile_stored(1, to + kSums, 64);
      _tile_stored(2, to + 2 * kSums, 64);
      _tile_stored(3, to + 3 * kSums, 64);
    }
  };

  template <int kDepth>
  void weigh(long p, long b, const Beside& beside) {
    if (a_.softcap > 0)
      bounded_ ? slopes_of<kDepth, true, true>(p, b, beside)
               : slopes_of<kDepth, false, true>(p, b, beside);
    else
      bounded_ ? slopes_of<kDepth, true, false>(p, b, beside)
               : slopes_of<kDepth, false, false>(p, b, beside);
  }

  // Makes probabilities and score gradients (before the scale) of scores s and
  // of the products dp of the output's gradient with the values.
  template <int kDepth, bool kBounded, bool kCap>
  void slopes_of(long p, long b, const Beside& beside) {
    const float* lse = lse_ + b * kPiece;
    const float* delta = delta_ + b * kPiece;
    const PowerOfTwo<kBounded> power[2] = {
        {unit_, neg(load(lse))}, {unit_, neg(load(lse + kLanes))}
    };
    const F32 shift[2] = {load(delta), load(delta + kLanes)};
    const F32 back = splat(kCap ? 1.0f / a_.softcap : 0.0f);
    const float* s = scores_ + b % 2 * kPiece * kPiece;
    const float* dp = products_ + b % 2 * kPiece * kPiece;
    Bf16* probabilities = probabilities_ + b * 2 * kTile;
    Bf16* slopes = slopes_ + b * 2 * kTile;
    Bf16* pairs = slope_pairs_ + (p * kBlocks + b) * 2 * kTile;
#pragma GCC unroll 16
    for (int i = 0; i < kPairs; ++i) {
      beside.advance<kDepth>(i);
      if (i % (kPairs / kPrefetches) == 0) prefetch_.step();
      __m512i both[2];
      for (int odd = 0; odd < 2; ++odd) {
        const int r = 2 * i + odd;
        F32 e[2], g[2];
        for (int half = 0; half < 2; ++half) {
          const long at = (r / 16 * 2 + half) * kSums + r % 16 * kLanes;
          const F32 score = load(s + at);
          e[half] = power[half](score);
          g[half] = e[half] * (load(dp + at) - shift[half]);
          if constexpr (kCap) {
            const F32 t = max(splat(-1.0f), score * back);
            g[half] *= fnma(t, t, splat(1.0f));
          }
        }
        both[odd] = (__m512i)_mm512_cvtne2ps_pbh(g[1].v, g[0].v);
        _mm512_store_si512(
            probabilities + r * 32, (__m512i)_mm512_cvtne2ps_pbh(e[1].v, e[0].v)
        );
        _mm512_store_si512(slopes + r * 32, both[odd]);
      }
      interleave_words(
          both[0], both[1], pairs + i * 32, pairs + kTile + i * 32
      );
    }
  }

  // dv += p^T do, or dk += ds^T q: 32 keys by the 32 dims of `half`.
  template <int kDepth>
  static void gather(
      const Bf16* left,
      const Bf16* right,
      float* sums,
      Stretch at,
      int half
  ) {
    float* above = sums + half * 2 * kSums;
    float* below = above + 2 * kDepth * kSums;
    open(above, below);
    left += at.lo * 2 * kTile;
    right += (at.lo * kDepth + half) * 2 * kTile;
    for (long b = at.lo; b < at.hi; ++b) {
      multiply(left, left + kTile, right, right + kTile);
      left += 2 * kTile;
      right += kDepth * 2 * kTile;
    }
    put(above, below);
  }

  // dq^T += k^T ds^T: the 32 dims of `half` by the queries of block b.
  template <int kDepth>
  void gather_dq(long first, const Stretch at[kPieces], long b, int half) {
    const long own = 2 * kDepth * kSums;  // of 16 queries
    float* left_half = dq_ + b * 2 * own + half * 2 * kSums;
    // Tiles of dims by queries: the second 16 dims lie right after the first.
    float* right_half = left_half + own;
    _tile_loadd(0, left_half, 64);
    _tile_loadd(1, right_half, 64);
    _tile_loadd(2, left_half + kSums, 64);
    _tile_loadd(3, right_half + kSums, 64);
    for (long p = 0; p < kPieces; ++p) {
      if (b < at[p].lo || b >= at[p].hi) continue;
      const Bf16* k =
          k_transposed_ + (first + p * kPiece) * dim_ + half * 2 * kTile;
      const Bf16* pairs = slope_pairs_ + (p * kBlocks + b) * 2 * kTile;
      multiply(k, k + kTile, pairs, pairs + kTile);
    }
    _tile_stored(0, left_half, 64);
    _tile_stored(1, right_half, 64);
    _tile_stored(2, left_half + kSums, 64);
    _tile_stored(3, right_half + kSums, 64);
  }

  HEARTH_INLINE static void multiply(
      const Bf16* above,
      const Bf16* below,
      const Bf16* left,
      const Bf16* right
  ) {
    _tile_loadd(4, above, 64);
    _tile_loadd(6, left, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, below, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  HEARTH_INLINE static void open(const float* above, const float* below) {
    _tile_loadd(0, above, 64);
    _tile_loadd(1, above + kSums, 64);
    _tile_loadd(2, below, 64);
    _tile_loadd(3, below + kSums, 64);
  }
  HEARTH_INLINE static void put(float* above, float* below) {
    _tile_stored(0, above, 64);
    _tile_stored(1, above + kSums, 64);
    _tile_stored(2, below, 64);
    _tile_stored(3, below + kSums, 64);
  }

  const AttentionGradArgs& g_;
  const AttentionArgs& a_;
  long depth_, dim_;  // tiles of 32 dims, and dims
  long padded_keys_, batch_ = 0, kv_head_ = 0, token_ = 0, count_ = 0;
  std::size_t used_;
  float unit_ = 0;
  DocumentIds ids_;
  RowPrefetch prefetch_{a_};
  bool bounded_keys_ = true, bounded_ = true;
  Bf16 *k_, *v_, *k_transposed_, *q_columns_, *o_columns_, *q_pairs_, *o_pairs_;
  Bf16 *probabilities_, *slopes_, *slope_pairs_;
  float *dk_, *dv_, *dq_, *scores_, *products_;
  alignas(64) float lse_[kQueries];
  alignas(64) float delta_[kQueries];
};

inline void tile_backward_units(
    const AttentionGradArgs& g,
    long begin,
    long end,
    void* scratch
) {
  TileBackward unit(g, scratch);
  TileDot::enter();
  for (long i = begin; i < end; ++i) {
    unit.run(i / g.forward.kv_heads, i % g.forward.kv_heads, i + 1 < end);
  }
  TileDot::leave();
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
