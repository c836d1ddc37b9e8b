#pragma once
// Attention of one layer for the parts of a pass; each thread of a team does
// its share. The queries of a part with few tokens read the pages in place; for
// a part with many, keys and values are first copied from the pages into rows.
#include <atomic>
#include <span>
#include <vector>

#include "hearth/infer/cpu/model.h"
#include "hearth/infer/cpu/spin_barrier.h"
#include "hearth/infer/engine/kv_pages.h"
#include "hearth/kernels/paged_attention.h"
#include "hearth/ops/execution.h"

namespace hearth::infer {

// Rows [row, row + count) of a pass are tokens [first, first + count) of a
// sequence, which has room for them.
struct PassPart {
  KvPages::Sequence* sequence = nullptr;
  long row = 0, count = 0, first = 0;
};

struct AttentionRows {
  float* q = nullptr;  // [row][head][dim]; few tokens: scaled
  long q_stride = 0;
  void* out = nullptr;  // [row][head][dim] of the model's compute type
};

class CpuAttention {
 public:
  CpuAttention(
      const CpuModel& model,
      const ops::Execution& run,
      kernels::KvFormat format,
      int page_tokens,
      bool invariant
  );

  // Before a pass, on one thread. Throws OutOfMemory.
  void plan(std::span<const PassPart> parts);
  // Whether that part has few tokens: then its queries come scaled.
  bool few(const PassPart& part) const;
  kernels::PagedKv pages(
      const PassPart& part,
      std::size_t layer,
      long kv_head
  ) const;

  // Every worker calls these in this order, with a barrier after each; the
  // queries were appended before. `finish` completes rows [begin, end) of
  // parts with few tokens.
  void attend(
      int worker,
      std::size_t layer,
      const AttentionRows& rows,
      SpinBarrier& barrier,
      std::byte* scratch
  ) noexcept;
  void finish(const AttentionRows& rows, long begin, long end) noexcept;
  // The bytes of each worker's scratch that attend() needs; known after plan().
  std::size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  struct Unit {
    std::size_t part;
    long chunk;
    std::size_t partial;  // floats from the beginning
  };

  const CpuModel& model_;
  ops::Execution run_;
  kernels::KvFormat format_;
  int page_tokens_;
  bool invariant_;
  long heads_, kv_heads_, dim_;
  std::size_t part_bytes_;
  std::span<const PassPart> parts_;
  std::vector<Unit> units_;              // of one key head
  std::vector<std::size_t> first_unit_;  // of each part
  std::vector<std::size_t> part_of_row_;
  std::size_t head_floats_ = 0;  // partials of one key head
  AlignedBuffer partials_, keys_, values_, queries_;
  std::size_t scratch_bytes_ = 0;
  std::atomic<long> next_{0};

  void attend_many(
      int worker,
      const PassPart& part,
      std::size_t layer,
      const AttentionRows& rows,
      SpinBarrier& barrier,
      std::byte* scratch
  ) noexcept;
};

}  // namespace hearth::infer
