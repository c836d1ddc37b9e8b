#pragma once
// A runner without a graph, for a CPU: keys and values lie in shared pages,
// rows of all sequences go through one product, and the weights are read once a
// step. cpu_model() says which models are left to the graph.
//
// A row's logits may depend on how many rows are in the step, as one row, few
// and many go through different products and a long part through another
// attention. With RunnerOptions::batch_invariant every row is computed by the
// same instructions in the same order, whatever else is in the step and
// however its sequence was cut.
#include <memory>
#include <vector>

#include "hearth/infer/cpu/pass.h"
#include "hearth/infer/engine/make_runner.h"
#include "hearth/infer/engine/runner_parts.h"

namespace hearth::infer {

class CpuRunner : public Runner {
 public:
  // Null where it cannot run the model or serve the options. Throws as
  // make_runner() does.
  static std::unique_ptr<CpuRunner> make(
      const models::LoadedModel& model,
      const RunnerOptions& options,
      const LoraSets& adapters
  );

  int vocabulary() const override;
  int context() const override;
  KvPool pool() const override;
  bool batch_invariant() const override { return options_.batch_invariant; }
  SequenceId open(int adapter = -1) override;
  SequenceId fork(SequenceId from, int tokens) override;
  void close(SequenceId sequence) override;
  int length(SequenceId sequence) const override;
  void truncate(SequenceId sequence, int tokens) override;
  int pages_for(SequenceId sequence, int more_tokens) const override;
  int pages_held(std::span<const SequenceId> sequences) const override {
    return pages_.pages_held(sequences);
  }
  std::optional<Hash128> weights_name(int adapter) override;
  std::vector<std::span<const std::byte>> page_bytes(
      SequenceId sequence
  ) const override;
  std::vector<std::span<std::byte>> restore(
      SequenceId sequence,
      int tokens
  ) override;
  std::span<const float> step(std::span<const RunnerPart> parts) override;
  int width() const override { return model_.config->dim; }
  std::span<const float> states() const override { return states_; }

  // Bytes of weights that a step of one token reads.
  std::size_t weight_bytes() const { return model_.bytes_per_token(); }

 private:
  CpuRunner(
      const models::LoadedModel& loaded,
      CpuModel model,
      const RunnerOptions& options,
      LoraSets adapters,
      KvType kv
  );

  // Rows of one pass: whole parts, or pieces of long ones.
  struct Piece {
    std::size_t part;
    long begin, count;  // of the part's tokens
  };

  const models::LoadedModel& loaded_;
  CpuModel model_;
  RunnerOptions options_;
  LoraSets adapters_;
  KvPages pages_;
  kernels::KvFormat format_;
  std::unique_ptr<CpuPass> pass_;
  std::optional<Hash128> base_name_;  // once it was asked for
  std::vector<float> logits_, states_;

  bool steps_in_bytes(const RunnerPart& part) const;
  std::vector<std::vector<Piece>> cut(std::span<const RunnerPart> parts) const;
  void run(
      std::span<const RunnerPart> parts,
      const std::vector<Piece>& pieces,
      const std::vector<ResultPlaces>& first_row
  );
};

}  // namespace hearth::infer
