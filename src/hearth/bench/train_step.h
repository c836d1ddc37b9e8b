#pragma once
// A training step of a model with random weights on random tokens, the same
// one again and again: what is timed when a whole step is.
#include <cstdint>
#include <memory>

#include "hearth/bench/runner.h"
#include "hearth/models/decoder.h"
#include "hearth/train/objectives/language_model.h"
#include "hearth/train/step/step.h"

namespace hearth::bench {

struct StepShape {
  int dim = 0, layers = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
  bool qkv_bias = false;
  std::uint32_t rows = 1, length = 1;
  std::uint32_t micro_rows = 0;  // at a time; 0: all
  bool packed_all = true;        // else the head alone
  int lora_rank = 0;  // of every projection; 0: all weights are trained
  bool bf16 = true;

  double tokens() const { return double(rows) * length; }
};

models::DecoderConfig config_of(const StepShape& shape);
// Arithmetic of one step, as train::training_flops counts it.
double step_flops(const StepShape& shape);

// A step of train/step/step.h on that batch.
class TrainStep {
 public:
  TrainStep(const StepShape& shape, std::uint64_t seed);
  ~TrainStep();
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  void operator()();
  // Runs the step once more, with zones on: what each op took, and the share of
  // the time in which none of them ran.
  void profile(Row& row);

 private:
  models::Decoder model_;
  data::Batch batch_;
  std::uint32_t rows_;
  std::size_t under_way_ = 0;
  train::LanguageModel objective_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<train::Step> step_;

  void take();
};

}  // namespace hearth::bench
