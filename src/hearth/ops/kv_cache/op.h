#pragma once
// The keys and values of one layer and one sequence, kept from step to step,
// and attention over them. On a CPU they lie in memory of our own that grows;
// on a GPU in arrays of MLX.
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
  // given: no more than needed, at the cost of a copy a page.
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
  // Rows [token, kv_head, dim] and, for int8, scales [token, kv_head].
  struct Store {
    AlignedBuffer k, v, k_scale, v_scale;
    int capacity = 0;
  };
  std::shared_ptr<Store> make_store(int capacity) const;
  int capacity_for(int tokens, int now) const;

  int kv_heads_, dim_;
  mx::Dtype dtype_;
  int length_ = 0;
  std::shared_ptr<Store> store_;
  std::optional<mx::array> k_, v_;  // a GPU's
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
