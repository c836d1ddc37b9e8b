#pragma once
// A runner over the decoder's graph for a GPU: sequences at different places
// decode together, with keys and values in pages that several may share
// (ops/paged_attention). Tokens can be chosen on the device, and a step be sent
// before the last one's are known.
//
// Prompts, and texts that are guessed ahead, go one after the other, each piece
// of one alone. So do all with RunnerOptions::batch_invariant, token by token:
// products of other numbers of rows round in other places.
#include <deque>

#include "hearth/infer/engine/kv_pages.h"
#include "hearth/infer/engine/make_runner.h"
#include "hearth/infer/engine/runner_parts.h"
#include "hearth/infer/graph/decode_step.h"

namespace hearth::infer {

class PagedRunner : public Runner {
 public:
  // Null where it cannot run the model or serve the options: rotations that
  // depend on the length in use, int8 keys, heads that the kernel does not
  // take, a device that does not run kernels of ours. Throws as make_runner()
  // does.
  static std::unique_ptr<PagedRunner> make(
      const models::LoadedModel& model,
      const RunnerOptions& options,
      std::vector<std::shared_ptr<const nn::LoraSet>> adapters
  );

  int vocabulary() const override;
  int context() const override;
  KvPool pool() const override { return pages_.pool(); }
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
  std::span<const float> step(std::span<const RunnerPart> parts) override;
  bool chooses() const override { return !options_.batch_invariant; }
  void send(std::span<const DrawnRow> rows) override;
  std::vector<std::int32_t> receive() override;
  int width() const override;
  std::span<const float> states() const override { return states_; }

 private:
  using Adapters = std::vector<std::shared_ptr<const nn::LoraSet>>;
  PagedRunner(
      const models::LoadedModel& model,
      const RunnerOptions& options,
      Adapters adapters,
      int pages
  );

  // Rows that one step feeds: a token of a sequence, which stands at `length`,
  // and where its results go.
  struct Row {
    const KvPages::Sequence* sequence;
    std::int32_t id;
    int length;
    ResultPlaces to;
    bool logits, states;
  };
  // Tokens of a step that was sent.
  struct Flight {
    mx::array tokens;
    std::size_t rows;
  };
  // What the host knows of the rows of a send().
  struct Sent {
    int rows = 0;  // rounded up
    std::vector<SequenceId> who;
    std::vector<int> places;
    std::vector<const KvPages::Sequence*> sequences;
    std::vector<Draw> draws;
    int longest = 0;
    StepForm form = StepForm::likely;
    // They are those of the send() before, and go on with its tokens.
    bool goes_on = true;
  };
  // What the last send() left on the device, and what the host knows of it.
  struct Device {
    std::vector<SequenceId> sequences;
    std::vector<int> lengths, table;  // of the next step; of the last
    ChosenRows chosen;
    mx::array pages;
  };

  const models::LoadedModel& model_;
  RunnerOptions options_;
  Adapters adapters_;
  DevicePages arrays_;
  KvPages pages_;
  DecodeStep decode_;
  std::deque<Flight> flights_;
  std::optional<Device> device_;
  std::vector<float> logits_, states_;

  const nn::LoraSet* adapter_of(const KvPages::Sequence& sequence) const;
  void reserve(std::span<const std::pair<SequenceId, int>> wanted);
  void decode(std::span<const Row> rows);
  void decode_alike(std::span<const Row> rows, const nn::LoraSet* lora);
  void feed(const RunnerPart& part, const ResultPlaces& to);
  void feed_piece(
      const RunnerPart& part,
      int begin,
      int count,
      ResultPlaces& to
  );
  std::vector<int> table_of(
      std::span<const KvPages::Sequence* const> sequences,
      int rows,
      int most
  ) const;
  Sent look_at(std::span<const DrawnRow> rows) const;
  mx::array ids_of(std::span<const DrawnRow> rows, int count) const;
};

}  // namespace hearth::infer
