#pragma once
// One run of a model over some rows without a graph: every thread of the team
// goes through the layers in step, does its share of each phase and meets the
// others at a barrier. Rows of all sequences go through each product together.
#include <cstdint>
#include <span>
#include <vector>

#include "hearth/infer/cpu_attention.h"
#include "hearth/infer/cpu_products.h"

namespace hearth::infer {

struct PassPlan {
  std::span<const PassPart> parts;
  std::span<const AdapterRows> adapters;
  std::span<const std::int32_t> ids;  // one a row
  std::span<const long> wanted;       // rows whose logits are wanted
  QuantWay way = QuantWay::int8;
};

class CpuPass {
 public:
  // Throws OutOfMemory.
  CpuPass(
      const CpuModel& model,
      const ops::Execution& run,
      kernels::KvFormat format,
      int page_tokens,
      long rows,
      bool invariant
  );

  long rows() const { return rows_; }
  // Writes one row of the vocabulary's size for each wanted one. The
  // sequences' pages have room; their lengths stay what they are. Throws
  // OutOfMemory before anything is written.
  void run(const PassPlan& plan, float* logits);

 private:
  const CpuModel& model_;
  ops::Execution run_;
  long rows_, dim_, heads_, kv_heads_, head_dim_, ffn_;
  CpuProducts products_;
  CpuAttention attention_;
  std::vector<float> turns_;  // rotary table
  long turned_positions_ = 0;
  std::vector<std::int32_t> positions_;
  AlignedBuffer stream_, normed_, qkv_, mixed_, gates_, inner_, head_rows_;
  AlignedBuffer attention_scratch_;

  void grow_turns(long positions);
  void embed(const PassPlan& plan, long begin, long end) noexcept;
  void norm(const float* weight, long begin, long end) noexcept;
  void turn(
      const PassPlan& plan,
      std::size_t layer,
      long begin,
      long end
  ) noexcept;
  void layer(
      int worker,
      const PassPlan& plan,
      std::size_t index,
      SpinBarrier& barrier
  ) noexcept;
  void mlp(
      int worker,
      const PassPlan& plan,
      const CpuLayer& l,
      SpinBarrier& barrier
  ) noexcept;
  void head(
      int worker,
      const PassPlan& plan,
      float* logits,
      SpinBarrier& barrier
  ) noexcept;
  ProductInput input(
      const PassPlan& plan,
      const AlignedBuffer& rows,
      long width
  ) const;
  Range share(long n, int worker) const;
};

}  // namespace hearth::infer
