#pragma once
// A training recipe: the sections of the YAML that `hearth train` reads.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/config.h"
#include "hearth/data/data_config.h"
#include "hearth/models/model_section.h"
#include "hearth/nn/lora.h"
#include "hearth/optim/optim_config.h"
#include "hearth/train/loop/health.h"
#include "hearth/train/objectives/objective_kind.h"
#include "hearth/train/recipe/later_sections.h"

namespace hearth::train {

struct TrainSection {
  std::string objective = "lm";
  std::int64_t steps = 1000;
  double epochs = 0;  // above 0: in place of steps
  std::int64_t tokens_per_step = 16384;
  std::int64_t micro_batch_size = 0;             // rows; 0: what fits
  std::int64_t gradient_accumulation_steps = 0;  // 0: what is left
  std::vector<std::int64_t> seq_lengths;
  std::vector<double> shape_probs;
  std::int64_t shape_guarantee = 0;
  std::string precision = "bf16";
  double loss_scale = 0;
  std::string checkpointing = "auto";
  std::string packed = "auto";
  std::int64_t eval_interval = 1;
  std::string memory = "auto";
  bool dynamic_batch = true;

  std::int64_t eval_every = 0;  // 0: at the end alone
  std::int64_t eval_tokens = 200000;
  std::int64_t early_stop = 0;  // evaluations without gain; 0: off
  std::int64_t save_every = 0;  // 0: see SaveSchedule
  std::int64_t keep = 2;

  ObjectiveConfigs objectives;  // what each objective has of its own
  HealthConfig health;

  void fields(FieldVisitor& v);
};

struct LoraSection : nn::LoraConfig {
  std::int64_t quantize_base = 0;  // bits; 0: the base as it is

  void fields(FieldVisitor& v);
};

struct RunSection {
  std::string dir;
  std::uint64_t seed = 0;
  std::int64_t threads = 0;  // 0: as many as the machine has
  void fields(FieldVisitor& v);
};

struct Recipe {
  models::ModelSection model;
  data::DataConfig data;
  TrainSection train;
  optim::OptimConfig optim;
  std::optional<LoraSection> lora;
  RunSection run;
  std::optional<QuantSection> quant;
  std::optional<CoreMlSection> coreml;
  std::optional<RfaiSection> rfai;
  std::optional<DistillSection> distill;
  HardwareSection hardware;

  void fields(FieldVisitor& v);
  // Throws UsageError for what single fields cannot see, with the keys' names.
  void check() const;
  // Lines about values that will not do what they seem to.
  std::vector<std::string> remarks() const;
  // What train.objective names.
  const ObjectiveKind& objective() const;
  // Tokens of one optimiser step: tokens_per_step, or what the pinned batch
  // comes to.
  std::uint64_t step_tokens() const;
  // The longest row.
  std::int64_t longest() const;
};

// Throws UsageError when train.checkpointing names a number of blocks that a
// model of so many layers does not have.
void check_checkpointed(const std::string& policy, int layers);

}  // namespace hearth::train
