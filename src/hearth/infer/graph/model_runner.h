#pragma once
// A runner over the decoder's graph: every family, every device. Each sequence
// has caches of its own, so a fork copies and takes pages for all it holds,
// and a step runs one part after the other. The plain way, which the faster
// ones are held against.
#include <map>
#include <memory>
#include <vector>

#include "hearth/infer/engine/make_runner.h"
#include "hearth/nn/lora.h"

namespace hearth::infer {

class ModelRunner : public Runner {
 public:
  // Options and errors are those of make_runner().
  ModelRunner(const models::LoadedModel& model, const RunnerOptions& options);
  ~ModelRunner() override;

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
  int pages_held(std::span<const SequenceId> sequences) const override;
  std::span<const float> step(std::span<const RunnerPart> parts) override;
  int width() const override;
  std::span<const float> states() const override { return states_; }

 private:
  struct Entry {
    std::vector<std::shared_ptr<ops::KvCache>> caches;
    int length = 0, adapter = -1;
  };

  const models::LoadedModel& model_;
  RunnerOptions options_;
  mx::Dtype kv_dtype_;
  std::vector<std::shared_ptr<const nn::LoraSet>> adapters_;
  KvPool pool_;
  SequenceId next_ = 0;
  std::map<SequenceId, Entry> sequences_;
  std::vector<float> logits_, states_;

  Entry& find(SequenceId id);
  const Entry& find(SequenceId id) const;
  int pages_of(int tokens) const;
  nn::Pass pass_of(Entry& entry, int tokens, bool prompt) const;
  void feed(Entry& entry, const RunnerPart& part);
  void feed_chunk(
      Entry& entry,
      std::span<const std::int32_t> ids,
      LogitsOf logits,
      const RunnerPart& part
  );
};

}  // namespace hearth::infer
