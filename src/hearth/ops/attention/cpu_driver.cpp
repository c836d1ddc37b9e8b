#include "hearth/ops/attention/cpu_driver.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::ops {
namespace {

using kernels::AttentionArgs;
using kernels::AttentionGradArgs;
using kernels::AttentionType;
using Index = std::ptrdiff_t;

constexpr std::size_t kLine = 64;

// A thread's share of the scratch, so that no two share a cache line.
std::size_t share(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

// Calls body(worker, begin, end) until all units are done, threads taking the
// next `run` of them as they come.
template <class Body>
void each_unit(ThreadPool& pool, Index units, Index run, Body body) {
  std::atomic<Index> next{0};
  pool.run([&](int worker) {
    for (Index i = next.fetch_add(run); i < units; i = next.fetch_add(run)) {
      body(worker, i, std::min(i + run, units));
    }
  });
}

// How many of `heads` a thread takes at once: in a run of them the next one's
// rows can be fetched meanwhile, but every thread should get several turns.
Index heads_together(Index heads, int threads) {
  constexpr Index kTurns = 8;
  return std::max<Index>(heads / (kTurns * threads), 1);
}

void require(const char* where, bool holds, const char* what, auto got) {
  if (!holds)
    throw UsageError(fmt::format("[{}] {}, got {}", where, what, got));
}

// Few enough rows that the keys, not they, should be cut.
bool is_decode(const AttentionArgs& a) {
  return a.heads / a.kv_heads * a.queries <= 32;
}

}  // namespace

void check_attention(const char* where, const AttentionArgs& a) {
  require(where, a.batch >= 0, "batch must not be negative", a.batch);
  require(where, a.kv_heads > 0, "kv heads must be at least 1", a.kv_heads);
  require(
      where, a.heads > 0 && a.heads % a.kv_heads == 0,
      "heads must be a multiple of kv heads", a.heads
  );
  require(where, a.queries >= 0, "queries must not be negative", a.queries);
  require(where, a.keys >= 0, "keys must not be negative", a.keys);
  require(
      where, a.dim >= 1 && a.dim <= kernels::kAttentionMaxDim,
      "the head size must be 1 to 256", a.dim
  );
  require(
      where, std::isfinite(a.scale) && a.scale > 0,
      "scale must be positive and finite", a.scale
  );
  require(
      where, std::isfinite(a.softcap) && a.softcap >= 0,
      "softcap must not be negative", a.softcap
  );
  require(where, a.window >= 0, "window must not be negative", a.window);
  require(
      where, a.query_type != AttentionType::kInt8,
      "queries must be float32 or bfloat16", "int8"
  );
  const bool scales = a.k_scale.data != nullptr && a.v_scale.data != nullptr;
  require(
      where, scales || a.kv_type != AttentionType::kInt8,
      "an int8 cache must come with its scales", "none"
  );
  require(
      where,
      (a.query_segments.data == nullptr) == (a.key_segments.data == nullptr),
      "segments must be given for queries and keys alike", "one of them"
  );
}

std::size_t attention_scratch(const AttentionArgs& args, const Execution& run) {
  return share(run.kernels.attention->forward_scratch(args)) *
         static_cast<std::size_t>(run.pool.size());
}

std::size_t attention_scratch(
    const AttentionGradArgs& args,
    const Execution& run
) {
  return share(run.kernels.attention->backward_scratch(args)) *
         static_cast<std::size_t>(run.pool.size());
}

void attention_forward(
    const AttentionArgs& args,
    const Execution& run,
    std::byte* scratch
) noexcept {
  const auto& kernels = *run.kernels.attention;
  const std::size_t part = share(kernels.forward_scratch(args));
  // Blocks of one head share its keys, but where heads are few they do not all
  // go to one thread.
  const Index heads = args.batch * args.heads;
  const Index blocks =
      kernels::attention_blocks(args.queries, kernels::kAttentionQueryBlock);
  const bool many = heads >= 4 * run.pool.size();
  each_unit(
      run.pool, attention_forward_units(args),
      many ? blocks * heads_together(heads, run.pool.size()) : 1,
      [&](int worker, Index begin, Index end) {
        kernels.forward(
            args, begin, end, scratch + static_cast<std::size_t>(worker) * part
        );
      }
  );
}

void attention_backward(
    const AttentionGradArgs& args,
    const Execution& run,
    std::byte* scratch
) noexcept {
  const auto& kernels = *run.kernels.attention;
  const std::size_t part = share(kernels.backward_scratch(args));
  each_unit(
      run.pool, attention_backward_units(args.forward),
      heads_together(attention_backward_units(args.forward), run.pool.size()),
      [&](int worker, Index begin, Index end) {
        kernels.backward(
            args, begin, end, scratch + static_cast<std::size_t>(worker) * part
        );
      }
  );
}

namespace {

// What every thread needs for itself, the largest over all sequences.
std::size_t cached_share(
    std::span<const AttentionArgs> sequences,
    const Execution& run
) {
  std::size_t part = 0;
  for (const AttentionArgs& a : sequences) {
    part = std::max(part, share(run.kernels.attention->forward_scratch(a)));
  }
  return part;
}

}  // namespace

std::size_t cached_attention_scratch(
    std::span<const AttentionArgs> sequences,
    const Execution& run
) {
  Index floats = 0;
  for (const AttentionArgs& a : sequences) {
    if (is_decode(a)) floats += attention_decode_partial_floats(a);
  }
  return cached_share(sequences, run) *
             static_cast<std::size_t>(run.pool.size()) +
         static_cast<std::size_t>(floats) * sizeof(float);
}

void cached_attention(
    std::span<const AttentionArgs> sequences,
    const Execution& run,
    std::byte* scratch
) {
  // A piece of work: a unit's number within its sequence.
  struct Piece {
    const AttentionArgs* args;
    Index unit;
    float* partials;  // null for a forward unit
  };
  const auto& kernels = *run.kernels.attention;
  const std::size_t part = cached_share(sequences, run);
  std::vector<Piece> pieces, rows;
  auto* next = reinterpret_cast<float*>(
      scratch + part * static_cast<std::size_t>(run.pool.size())
  );
  for (const AttentionArgs& a : sequences) {
    const bool decode = is_decode(a);
    const Index units =
        decode ? attention_decode_units(a) : attention_forward_units(a);
    for (Index i = 0; i < units; ++i) {
      pieces.push_back({&a, i, decode ? next : nullptr});
    }
    for (Index i = 0; decode && i < a.batch * a.heads; ++i) {
      rows.push_back({&a, i, next});
    }
    if (decode) next += attention_decode_partial_floats(a);
  }
  each_unit(
      run.pool, static_cast<Index>(pieces.size()), 1,
      [&](int worker, Index i, Index) {
        const Piece& p = pieces[static_cast<std::size_t>(i)];
        void* own = scratch + static_cast<std::size_t>(worker) * part;
        if (p.partials == nullptr) {
          kernels.forward(*p.args, p.unit, p.unit + 1, own);
        } else {
          kernels.decode(*p.args, p.unit, p.unit + 1, p.partials, own);
        }
      }
  );
  for (const Piece& p : rows) {
    kernels.decode_combine(*p.args, p.unit, p.unit + 1, p.partials);
  }
}

void CachedAttention::operator()(
    std::span<const AttentionArgs> sequences,
    const Execution& run
) {
  for (const AttentionArgs& a : sequences) {
    check_attention("ops.CachedAttention", a);
  }
  const std::size_t bytes = cached_attention_scratch(sequences, run);
  if (scratch_.size() < bytes) scratch_ = AlignedBuffer(zone_, bytes);
  cached_attention(sequences, run, scratch_.data());
}

}  // namespace hearth::ops
