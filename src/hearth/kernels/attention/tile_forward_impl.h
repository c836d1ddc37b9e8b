#pragma once
// The forward pass on tiles for heads of up to 64. It takes sixteen queries at
// a time: their sums of values stay in four tiles over all pieces of 32 keys.
// Scores are computed transposed, keys by queries, so that a query is a lane,
// and the probabilities of a piece are one tile of pairs.
//
// Products of tiles occupy the port of half the vector instructions. Several of
// them in a row hold up the vector work behind them, so those of the next
// piece's scores and of the last piece's values are spread one by one among
// this piece's exponentials.
//
// Probabilities are relative to a reference score, which follows the greatest
// score only when that is kSlack powers of two above it, so that sums are
// rarely rescaled.
#include "hearth/kernels/attention/tile_forms_impl.h"
#include "hearth/kernels/attention/tile_scores_impl.h"
#include "hearth/kernels/simd/math_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

class TileForward {
  static constexpr long kTile = kTileElements, kSums = kTileSums;
  static constexpr long kQueries = 16;  // of a strip
  static constexpr long kPiece = 32;    // keys
  static constexpr long kPairs = kPiece / 2;
  static constexpr long kStep = 1024;  // keys, packed at once
  static constexpr long kMostRows = 1024;
  static constexpr float kSlack = 6;

 public:
  // Blocks of queries of one head that are best run together: the keys are
  // packed once for all.
  static constexpr long kBlocks = kMostRows / kAttentionQueryBlock;

  TileForward(const AttentionArgs& args, void* scratch) : a_(args) {
    Carver carver(scratch);
    depth_ = depth_of(a_);
    const long rows = least(kMostRows, round_up(a_.queries, kQueries));
    const long keys = least(kStep, round_up(a_.keys, kPiece));
    q_ = carver.take<Bf16>(rows * 32 * depth_);
    out_ = carver.take<float>(rows * 32 * depth_);
    base_ = carver.take<float>(rows);
    sum_ = carver.take<float>(rows);
    k_ = carver.take<Bf16>(keys * 32 * depth_);
    v_ = carver.take<Bf16>(keys * 32 * depth_);
    scores_ = carver.take<float>(2 * kPiece * kQueries);
    probabilities_ = carver.take<Bf16>(2 * kTile);
    used_ = carver.used();
  }
  std::size_t scratch_bytes() const { return used_; }

  // Up to kMostRows queries of one head. With `more` it prefetches the keys of
  // the next head meanwhile.
  void run(long batch, long head, long token, long tokens, bool more) {
    batch_ = batch;
    head_ = head;
    kv_head_ = head / (a_.heads / a_.kv_heads);
    token_ = token;
    count_ = tokens;
    unit_ = (a_.softcap > 0 ? 1.0f : a_.scale) * kLog2E;
    ids_ = DocumentIds(a_, batch);
    const long first = a_.query_offset + token;
    const Stretch all = keys_seen(a_, first, first + tokens - 1);
    load_queries(0);
    // Steps begin at multiples of their length, whatever the range of queries,
    // so that no result depends on how queries were cut. There is one step at
    // least, since queries that see nothing have results too.
    long at = all.lo / kStep * kStep;
    first_step_ = true;
    do {
      const Stretch keys{at, least(at + kStep, a_.keys)};
      last_step_ = at + kStep >= all.hi;
      if (!last_step_)
        expect(batch, kv_head_, {keys.hi, least(keys.hi + kStep, all.hi)});
      else if (more)
        expect_head(head + 1);
      pack(keys);
      for (long s = 0; s < tokens; s += kQueries) {
        depth_ == 1 ? strip<1>(keys, s) : strip<2>(keys, s);
      }
      if (last_step_) finish(round_up(tokens, kQueries) - kQueries);
      first_step_ = false;
      at += kStep;
    } while (!last_step_);
  }

 private:
  void load_queries(long s) {
    Bounded bounded;
    const long n = least(kQueries, count_ - s);
    const TokenRows rows(a_.q, a_, batch_, token_ + s, head_, n);
    transposed_rows_right(rows, 0, depth_, q_ + s * 32 * depth_, bounded);
    bounded_queries_[s / kQueries] = bounded;
    store(base_ + s, splat(kMinusInf));
    store(sum_ + s, zero());
    // Prefetches the rows after these, and the place of the results.
    const char* next = rows.data + kQueries * rows.stride;
    const char* to = row_of(a_.out, batch_, token_ + s, head_);
    const bool more = s + kQueries < count_;
    for (long i = 0; i < n; ++i) {
      for (long b = 0; b < a_.dim * 2; b += 64) {
        if (more) __builtin_prefetch(next + i * rows.stride + b, 0, 3);
        __builtin_prefetch(to + i * a_.out.token * 2 + b, 1, 2);
      }
    }
  }

  struct Packed {
    long batch, kv_head, at;
    bool operator==(const Packed&) const = default;
  };

  void pack(Stretch keys) {
    const Packed wanted{batch_, kv_head_, keys.lo};
    if (packed_ == wanted) return;
    packed_ = wanted;
    const long n = keys.hi - keys.lo;
    const TokenRows k(a_.k, a_, batch_, keys.lo, kv_head_, n);
    const TokenRows v(a_.v, a_, batch_, keys.lo, kv_head_, n);
    Bounded bounded;
    for (long r = 0; r < n; r += kPiece) {
      rows_left(k, r, depth_, k_ + r * 32 * depth_, bounded);
      rows_left(k, r + 16, depth_, k_ + (r + 16) * 32 * depth_, bounded);
      transposed_rows_left(v, r, depth_, v_ + r * 32 * depth_);
    }
    bounded_keys_ = bounded;
  }

  // Queries [s, s + 16) against the keys of one step.
  template <int kDepth>
  void strip(Stretch keys, long s) {
    const long n = least(kQueries, count_ - s);
    const auto [at, mixed, whole] =
        sight_of(a_, ids_, keys, token_ + s, n, kPiece);
    const Bf16* q = q_ + s * 32 * kDepth;
    float* out = out_ + s * 32 * kDepth;
    first_step_ ? clear() : open<kDepth>(out);
    Beside beside;
    if (!at.empty()) {
      _tile_loadd(5, q, 64);
      if constexpr (kDepth > 1) _tile_loadd(6, q + kTile, 64);
      beside.k = keys_at(at.lo);
      beside.scores = scores_of(at.lo);
      for (int i = 0; i < kPairs; ++i) beside.advance<kDepth>(i);
    }
    // The first scores are being computed meanwhile.
    if (last_step_ && s > 0) finish(s - kQueries);
    if (first_step_ && s + kQueries < count_) load_queries(s + kQueries);
    Reference f{load(base_ + s), load(sum_ + s)};
    const bool bounded =
        a_.scale < 0x1p33f && bounded_keys_ && bounded_queries_[s / kQueries];
    for (long r = at.lo; r < at.hi; r += kPiece) {
      prefetch_.step();
      float* scores = scores_of(r);
      if (a_.softcap > 0) {
        cap_row(scores, kPiece * kQueries, a_.scale, a_.softcap);
      }
      const long key = keys.lo + r;
      if (mixed || !whole.holds({key, key + kPiece})) {
        for (long i = 0; i < kPiece; ++i) {
          hide_unseen(a_, ids_, key + i, token_ + s, scores + i * kQueries);
        }
      }
      beside.k = r + kPiece < at.hi ? keys_at(r + kPiece) : nullptr;
      beside.scores = scores_of(r + kPiece);
      const F32 top = top_of(scores) * splat(unit_);
      if (f.is_passed_by(top)) raise<kDepth>(f, top, out, beside);
      if (bounded)
        weigh<kDepth, true>(f, scores, probabilities_of(r), beside);
      else
        weigh<kDepth, false>(f, scores, probabilities_of(r), beside);
      beside.v = v_ + r * 32 * kDepth;
      beside.probabilities = probabilities_of(r);
    }
    if (beside.v) beside.gather<kDepth>();
    put<kDepth>(out);
    store(base_ + s, f.base);
    store(sum_ + s, f.sum);
  }

  // What the probabilities of 16 queries are relative to, in powers of two
  // (-inf: nothing seen yet), and their sum.
  struct Reference {
    F32 base, sum;
    bool is_passed_by(F32 top) const {
      return _mm512_cmp_ps_mask(top.v, (base + splat(kSlack)).v, _CMP_GT_OQ) !=
             0;
    }
    F32 down() const {
      return select(base == splat(kMinusInf), zero(), neg(base));
    }
  };

  // The products to be done beside a piece's exponentials. Tiles 0 to 3 hold
  // the sums, 5 and 6 the queries.
  struct Beside {
    const Bf16* k = nullptr;  // the next piece's keys; null: no such piece
    float* scores = nullptr;
    const Bf16* v = nullptr;  // of the last piece; null: no such piece
    const Bf16* probabilities = nullptr;

    // The share of pair `i`: scores in the first half, values in the second.
    template <int kDepth>
    HEARTH_INLINE void advance(int i) const {
      if (i % 2 != 0) return;
      if (i < kPairs / 2) {
        if (k) multiply<kDepth>(i / 2);
      } else if (v) {
        add_value<kDepth>(i / 2 - 4);
      }
    }
    template <int kDepth>
    void gather() const {
      for (int t = 0; t < 4; ++t) add_value<kDepth>(t);
    }

   private:
    // A quarter of the scores' products.
    template <int kDepth>
    HEARTH_INLINE void multiply(int quarter) const {
      const int half = quarter / 2;
      if (quarter % 2 == 0) {
        _tile_zero(4);
        _tile_loadd(7, k + half * kDepth * kTile, 64);
        _tile_dpbf16ps(4, 7, 5);
        return;
      }
      if constexpr (kDepth > 1) {
        _tile_loadd(7, k + (half * kDepth + 1) * kTile, 64);
        _tile_dpbf16ps(4, 7, 6);
      }
      _tile_stored(4, scores + half * kSums, 64);
    }
    template <int kDepth>
    HEARTH_INLINE void add_value(int t) const {
      if (t >= 2 * kDepth) return;
      if (t == 0) _tile_loadd(4, probabilities, 64);
      _tile_loadd(7, v + t * kTile, 64);
      if (t == 0) _tile_dpbf16ps(0, 7, 4);
      if (t == 1) _tile_dpbf16ps(1, 7, 4);
      if (t == 2) _tile_dpbf16ps(2, 7, 4);
      if (t == 3) _tile_dpbf16ps(3, 7, 4);
    }
  };

  const Bf16* keys_at(long r) const { return k_ + r * 32 * depth_; }
  float* scores_of(long r) {
    return scores_ + r / kPiece % 2 * kPiece * kQueries;
  }
  Bf16* probabilities_of(long r) {
    return probabilities_ + r / kPiece % 2 * kTile;
  }

  HEARTH_INLINE static void clear() {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  template <int kDepth>
  HEARTH_INLINE static void open(const float* out) {
    _tile_loadd(0, out, 64);
    _tile_loadd(1, out + kSums, 64);
    if constexpr (kDepth > 1) {
      _tile_loadd(2, out + 2 * kSums, 64);
      _tile_loadd(3, out + 3 * kSums, 64);
    }
  }
  template <int kDepth>
  HEARTH_INLINE static void put(float* out) {
    _tile_stored(0, out, 64);
    _tile_stored(1, out + kSums, 64);
    if constexpr (kDepth > 1) {
      _tile_stored(2, out + 2 * kSums, 64);
      _tile_stored(3, out + 3 * kSums, 64);
    }
  }

  HEARTH_INLINE static F32 top_of(const float* scores) {
    F32 top[4];
    for (int i = 0; i < 4; ++i) top[i] = load(scores + i * kQueries);
    for (long r = 4; r < kPiece; r += 4) {
      for (int i = 0; i < 4; ++i) {
        top[i] = max(top[i], load(scores + (r + i) * kQueries));
      }
    }
    return max(max(top[0], top[1]), max(top[2], top[3]));
  }

  // Rescales the sums to the reference of a greater score.
  template <int kDepth>
  [[gnu::noinline]] static void raise(
      Reference& f,
      F32 top,
      float* out,
      Beside& beside
  ) {
    if (beside.v) beside.gather<kDepth>();
    beside.v = nullptr;
    const F32 now = max(f.base, top);
    const F32 factor =
        select(f.base == now, splat(1.0f), exp2<6>(f.base - now));
    f.base = now;
    f.sum *= factor;
    put<kDepth>(out);
    for (long i = 0; i < 2 * kDepth * 16; ++i) {
      store(out + i * kLanes, load(out + i * kLanes) * factor);
    }
    open<kDepth>(out);
  }

  // Turns scores into probabilities, in pairs of keys.
  template <int kDepth, bool kBounded>
  HEARTH_INLINE void weigh(
      Reference& f,
      const float* scores,
      Bf16* to,
      const Beside& beside
  ) const {
    const PowerOfTwo<kBounded> power(unit_, f.down());
    F32 even_sum = zero(), odd_sum = zero();
#pragma GCC unroll 16
    for (int i = 0; i < kPairs; ++i) {
      beside.advance<kDepth>(i);
      const float* row = scores + 2 * i * kQueries;
      const F32 even = power(load(row)), odd = power(load(row + kQueries));
      even_sum += even;
      odd_sum += odd;
      store_pair(to + 2 * i * kQueries, even, odd);
    }
    f.sum += even_sum + odd_sum;
  }

  // Keys and values that will be packed next.
  void expect(long batch, long kv_head, Stretch keys) {
    prefetch_.forget();
    const long n = keys.hi - keys.lo;
    prefetch_.add(TokenRows(a_.k, a_, batch, keys.lo, kv_head, n));
    prefetch_.add(TokenRows(a_.v, a_, batch, keys.lo, kv_head, n));
    prefetch_.spread(n / kPiece * (count_ / kQueries) / 2);
  }
  void expect_head(long head) {
    const long group = a_.heads / a_.kv_heads;
    if (head % group != 0) return;
    const bool next_batch = head == a_.heads;
    expect(
        batch_ + (next_batch ? 1 : 0), next_batch ? 0 : head / group,
        {0, least(kStep, a_.keys)}
    );
  }

  // Normalised rows to out, log-sum-exps to lse.
  void finish(long s) {
    const F32 sum = load(sum_ + s);
    const long n = least(kQueries, count_ - s);
    store_transposed(
        out_ + s * 32 * depth_,
        select(sum == zero(), zero(), splat(1.0f) / sum), a_.dim,
        row_of(a_.out, batch_, token_ + s, head_), a_.out.token * 2, n
    );
    if (a_.lse == nullptr) return;
    const F32 lse = select(
        sum == zero(), splat(kMinusInf),
        fma(load(base_ + s), splat(kLn2), log(sum))
    );
    const long at = (batch_ * a_.heads + head_) * a_.queries + token_ + s;
    store(a_.lse + at, lse, static_cast<int>(n));
  }

  const AttentionArgs& a_;
  long depth_;  // tiles of 32 dims
  long batch_ = 0, head_ = 0, kv_head_ = 0, token_ = 0, count_ = 0;
  std::size_t used_;
  float unit_ = 0;
  DocumentIds ids_;
  RowPrefetch prefetch_{a_};
  Packed packed_{-1, -1, -1};
  bool first_step_ = true, last_step_ = true;
  bool bounded_keys_ = true, bounded_queries_[kMostRows / kQueries];
  Bf16 *q_, *k_, *v_, *probabilities_;
  float *out_, *base_, *sum_, *scores_;
};

inline void tile_forward_units(
    const AttentionArgs& a,
    long begin,
    long end,
    void* scratch
) {
  const long blocks = attention_blocks(a.queries, kAttentionQueryBlock);
  TileForward forward(a, scratch);
  TileDot::enter();
  for (long unit = begin; unit < end;) {
    const long block = unit % blocks, token = block * kAttentionQueryBlock;
    const long together =
        least(TileForward::kBlocks, least(end - unit, blocks - block));
    const long head = unit / blocks;
    unit += together;
    forward.run(
        head / a.heads, head % a.heads, token,
        least(together * kAttentionQueryBlock, a.queries - token),
        unit < end && unit % blocks == 0
    );
  }
  TileDot::leave();
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
