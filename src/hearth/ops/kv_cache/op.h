#pragma once
// The keys and values of one layer and one sequence, kept from step to step,
// and attention over them. On a CPU they lie in memory of our own that grows;
// on a GPU in arrays of MLX with room for more, which steps write in place.
#include <memory>
#include <optional>

#include "hearth/base/aligned_buffer.h"
#include "hearth/ops/attention/op.h"

namespace hearth::ops {

class KvCache {
 public:
  // dtype is float32 or bfloat16, that of the queries; int8 holds either with
  // a scale per token and head.
  // Memory grows by doubling, or to a multiple of `page` tokens where that is
  // given: no more than needed, at the cost of a copy a page. On a GPU it grows
  // by 256 tokens where no page is given.
  KvCache(int kv_heads, int dim, mx::Dtype dtype, int page = 0);

  // Tokens in it, those of steps that are built and not yet evaluated too.
  int length() const { return length_; }
  // Forgets all tokens from that one on. What was built must be evaluated.
  void truncate(int length);
  // Another cache that begins with the first `length` tokens of this one. What
  // was built must be evaluated. Throws OutOfMemory.
  std::shared_ptr<KvCache> fork(int length) const;
  std::size_t nbytes() const;

 private:
  friend class CachedAttentionOp;
  friend mx::array cached_attention(
      const mx::array&,
      const mx::array&,
      const mx::array&,
      const std::shared_ptr<KvCache>&,
      const AttentionOptions&,
      mx::StreamOrDevice
  );
  friend mx::array cached_attention_cpu(
      const mx::array&,
      const mx::array&,
      const mx::array&,
      const std::shared_ptr<KvCache>&,
      const AttentionOptions&,
      mx::StreamOrDevice
  );
  // Rows [token, kv_head, dim] and, for int8, scales [token, kv_head].
  struct Store {
    AlignedBuffer k, v, k_scale, v_scale;
    int capacity = 0;
  };
  // The same on a GPU: [1, tokens with room, kv_heads, dim] or, for scales, 1.
  struct Block {
    mx::array rows;
    std::optional<mx::array> scales;
    std::size_t nbytes() const;
  };
  std::shared_ptr<Store> make_store(int capacity) const;
  std::shared_ptr<Store> copy_of_store(int length) const;
  int capacity_for(int tokens, int now) const;
  // Puts rows [1, tokens, kv_heads, dim] behind the first `before` of a block.
  void append(
      std::optional<Block>& block,
      const mx::array& rows,
      int before,
      mx::StreamOrDevice s
  ) const;
  // Rows [begin, end) of a block in that dtype.
  static mx::array rows_of(
      const Block& block,
      int begin,
      int end,
      mx::Dtype dtype,
      mx::StreamOrDevice s
  );

  int kv_heads_, dim_;
  mx::Dtype dtype_;
  int length_ = 0;
  std::shared_ptr<Store> store_;
  std::optional<Block> k_, v_;
  int page_;
};

// Appends k and v [1, tokens, kv_heads, dim] to the cache and returns the
// attention of q [1, tokens, heads, dim], whose last query meets the last key,
// over all of it; causal. No gradients. Steps of one cache must be evaluated
// in the order they were built, each once. options: scale, softcap, window.
mx::array cached_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const std::shared_ptr<KvCache>& cache,
    const AttentionOptions& options = {},
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
