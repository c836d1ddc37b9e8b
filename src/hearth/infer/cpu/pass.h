#pragma once
// One run of a model over some rows without a graph: every thread of the team
// goes through the layers in step, does its share of each phase and meets the
// others at a barrier. Rows of all sequences go through each product together.
// What the halves of a block and the head do is in files of their own.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hearth/infer/cpu/attention.h"
#include "hearth/infer/cpu/products.h"
#include "hearth/infer/cpu/rotary.h"

namespace hearth::infer {

// A row whose hidden state is wanted, and the place to write it to.
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
  // Writes one row of the vocabulary's size for each wanted one. The
  // sequences' pages have room; their lengths stay what they are. Throws
  // OutOfMemory before anything is written.
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
    // Before it works on rows, which leaves memory idle.
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
  // `aside_` holds rows of float beside the stream: positions, a branch that
  // is normed before it joins, what the head reads.
  AlignedBuffer stream_, aside_, normed_, qkv_, mixed_, gates_, inner_;
  AlignedBuffer attention_scratch_;

  // Prepares everything that a run needs beside the buffers for rows.
  void make_ready(const PassPlan& plan);
  // The same worker, with its share of that many rows.
  Worker sharing(const Worker& w, long rows) const;
  // Those of the layer, or of the head behind the last one.
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
  // The stream's own rows, as a half's first products read them.
  void norm(const Worker& w, const CpuNorm& norm) noexcept;
  // A half's last product, added to the stream or, with a norm after it, put
  // aside; join() then adds it, and is for the thread's own rows. `next` is
  // what the next half begins with.
  void leave_half(
      const Worker& w,
      const PassPlan& plan,
      const ProductInput& in,
      const CpuMatrix& matrix,
      const CpuNorm& after,
      const Together& next
  ) noexcept;
  void join(const Worker& w, const CpuNorm& after) noexcept;

  // cpu_pass_attention.cpp
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

  // cpu_pass_mlp.cpp
  void mlp(const Worker& w, const PassPlan& plan, std::size_t index) noexcept;
  template <class T>
  void activate(const CpuLayer& l, const CpuProducts::Part& part) noexcept;

  // cpu_pass_head.cpp; the worker's rows are of the wanted ones, or of
  // plan.states.
  void show_states(const Worker& w, const PassPlan& plan) noexcept;
  void head(const Worker& w, const PassPlan& plan, float* logits) noexcept;
};

}  // namespace hearth::infer
