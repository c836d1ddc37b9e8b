#pragma once
// Attention on plain memory: what the kernels' units need around them, threads
// and scratch. No arrays; the op and the inference engine's KV cache call it.
#include <cstddef>
#include <span>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/memory.h"
#include "hearth/kernels/attention.h"
#include "hearth/ops/execution.h"

namespace hearth::ops {

// Throws UsageError "[where] ..." unless the kernels can run these.
void check_attention(const char* where, const kernels::AttentionArgs& args);

// Bytes of scratch for all the pool's threads.
std::size_t attention_scratch(
    const kernels::AttentionArgs& args,
    const Execution&
);
std::size_t attention_scratch(
    const kernels::AttentionGradArgs& args,
    const Execution&
);
// scratch is 64-byte aligned. Threads take units as they come; the result is
// the same whoever takes which.
void attention_forward(
    const kernels::AttentionArgs& args,
    const Execution& run,
    std::byte* scratch
) noexcept;
void attention_backward(
    const kernels::AttentionGradArgs& args,
    const Execution& run,
    std::byte* scratch
) noexcept;

// Attention over KV caches, float32, bfloat16 or int8 with a scale per token
// and head. Each sequence has its own lengths and addresses (batch is usually
// 1) and has passed check_attention. Sequences with few queries are cut along
// their keys, so that a single one keeps all threads busy; a prompt's chunk
// goes the way of training. scratch is 64-byte aligned.
std::size_t cached_attention_scratch(
    std::span<const kernels::AttentionArgs> sequences,
    const Execution& run
);
void cached_attention(
    std::span<const kernels::AttentionArgs> sequences,
    const Execution& run,
    std::byte* scratch
);

// The same with memory of its own, kept from call to call.
class CachedAttention {
 public:
  explicit CachedAttention(MemoryZone zone) : zone_(zone) {}

  // Throws UsageError or OutOfMemory before anything is written.
  void operator()(
      std::span<const kernels::AttentionArgs> sequences,
      const Execution& run
  );

 private:
  MemoryZone zone_;
  AlignedBuffer scratch_;
};

}  // namespace hearth::ops
