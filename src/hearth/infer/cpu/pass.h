#pragma once
// One run of a model over the tokens of several sequences, a row each, without
// a graph. Every thread of the team goes through all layers; it does its share
// of each phase and meets the others at a barrier. Rows of all sequences go
// through each product together. The halves of a block (attention, MLP) and the
// head have files of their own.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hearth/infer/cpu/attention.h"
#include "hearth/infer/cpu/products.h"
#include "hearth/infer/cpu/rotary.h"

namespace hearth::infer {

// A row whose hidden state is wanted, and where to write it.
struct StateRow {
  long row;
  float* to;
};

struct PassPlan {
  std::span<const PassPart> parts;
  std::span<const AdapterRows> adapters;
  std::span<const std::int32_t> ids;  // one a row
  std::span<const long> wanted;       // rows whose logits are wanted
  QuantWay way = QuantWay::int8;
  std::span<const StateRow> states = {};
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
  // Writes a row of logits for each wanted row. The sequences' pages must have
  // room; their lengths are not changed. Throws OutOfMemory before anything is
  // written.
  void run(const PassPlan& plan, float* logits);

 private:
  // One thread of the team, the rows it does alone, and what it reads next.
  struct Worker {
    int index;
    long begin, end;
    SpinBarrier& barrier;
    ReadAhead& ahead;

    // Waits for the others.
    void meet() const noexcept;
    // Prefetches before work on rows, which leaves memory idle.
    void look_ahead() const noexcept { ahead.more(ReadAhead::kAtOnce); }
  };
  // Matrices that are multiplied with the same rows.
  struct Together {
    std::array<const CpuMatrix*, 3> matrices{};
    std::size_t count = 0;
    bool alike = false;  // a thread has the same columns of each

    std::span<const CpuMatrix* const> all() const {
      return std::span(matrices).first(count);
    }
  };
  static Together projections(const CpuLayer& l);
  static Together gates(const CpuLayer& l);
  static Together single(const CpuMatrix& m) { return {{&m}, 1, false}; }

  const CpuModel& model_;
  ops::Execution run_;
  long rows_, dim_, heads_, kv_heads_, head_dim_, ffn_;
  CpuProducts products_;
  CpuAttention attention_;
  std::vector<RotaryTable> rotary_;  // of CpuModel::ropes
  std::vector<std::int32_t> positions_;
  // `stream_` is the residual stream. `aside_` holds other rows of float:
  // position embeddings, a half's output that is normed before it is added, the
  // head's input.
  AlignedBuffer stream_, aside_, normed_, qkv_, mixed_, gates_, inner_;
  AlignedBuffer attention_scratch_;

  // Prepares everything that a run needs beside the buffers for rows.
  void make_ready(const PassPlan& plan);
  // The same worker, with its share of that many rows.
  Worker sharing(const Worker& w, long rows) const;
  // The first matrices of the layer, or the head's after the last layer.
  Together opening(std::size_t layer) const;
  void expect(
      const Worker& w,
      const PassPlan& plan,
      const Together& next
  ) const noexcept;
  long qkv_width() const { return (heads_ + 2 * kv_heads_) * head_dim_; }
  ProductInput input(
      const PassPlan& plan,
      const AlignedBuffer& rows,
      long width
  ) const;

  void embed(const Worker& w, const PassPlan& plan) noexcept;
  // Norms the worker's own rows of the stream for a half's first products.
  void norm(const Worker& w, const CpuNorm& norm) noexcept;
  // Computes a half's last product and adds it to the stream. Where a norm
  // comes after it, the product is put aside instead, and join() adds it for
  // the worker's own rows. `next` are the matrices that the next half begins
  // with.
  void leave_half(
      const Worker& w,
      const PassPlan& plan,
      const ProductInput& in,
      const CpuMatrix& matrix,
      const CpuNorm& after,
      const Together& next
  ) noexcept;
  void join(const Worker& w, const CpuNorm& after) noexcept;

  // pass_attention.cpp
  void attention(
      const Worker& w,
      const PassPlan& plan,
      std::size_t index
  ) noexcept;
  void project(
      const Worker& w,
      const PassPlan& plan,
      const CpuLayer& l
  ) noexcept;
  void norm_heads(const Worker& w, const CpuLayer& l) noexcept;
  void rotate_heads(const Worker& w, const CpuLayer& l) noexcept;
  void append(
      const Worker& w,
      const PassPlan& plan,
      std::size_t index
  ) noexcept;

  // pass_mlp.cpp
  void mlp(const Worker& w, const PassPlan& plan, std::size_t index) noexcept;
  template <class T>
  void activate(const CpuLayer& l, const CpuProducts::Part& part) noexcept;

  // pass_head.cpp. The worker's share is of the wanted rows, or of plan.states.
  void show_states(const Worker& w, const PassPlan& plan) noexcept;
  void head(const Worker& w, const PassPlan& plan, float* logits) noexcept;
};

}  // namespace hearth::infer
