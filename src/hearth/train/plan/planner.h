#pragma once
// Decides, before anything runs, how a recipe is cut into micro-batches and
// which blocks are computed again, and says what that will take in memory and
// time. Knows sizes and a budget; loads no weights and no data.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/hardware/peaks.h"
#include "hearth/train/plan/memory_model.h"
#include "hearth/train/recipe/recipe.h"

namespace hearth::train {

// What a plan is made for.
struct PlanMachine {
  std::size_t budget = 0;  // bytes; 0: no limit is known
  std::string budget_reason;
  int threads = 1;
  const kernels::Table* table = nullptr;  // null: the best of this machine
  double peak_gflops = 0;  // in the recipe's precision; 0: not measured
  // Of that peak, by width, narrowest first; empty: what is typical.
  std::vector<hardware::TrainingShare> training;
  // For a run that has begun: what --resume must not change is not advised.
  bool begun = false;
};

// The model a recipe trains: of model.from, or a new one, whose vocabulary the
// recipe or its tokenizer must tell.
struct PlannedModel {
  models::DecoderConfig config;
  // Of a frozen base: matrices that are held quantised, by name.
  QuantizedMatrices quantized = {};
  // Of the start that an objective reads beside a whole model.
  QuantizedMatrices start_quantized = {};
  std::shared_ptr<const io::ModelSource> source = {};
};
PlannedModel planned_model(const Recipe& recipe);

struct Plan {
  std::int64_t rows = 0;  // of a micro-batch, the longest, to begin with
  std::int64_t settled_rows = 0;  // where the batch policy takes them
  std::int64_t accumulation = 1;  // micro-batches of a step, settled
  std::string checkpointing;      // none, all or a number
  std::string packed;             // all or head
  std::vector<std::string> reasons;
  MemoryTable memory;
  std::size_t budget = 0;
  std::string budget_reason;
  bool fits = true;
  std::string advice;  // the smallest change that would fit
  bool begun = false;  // as PlanMachine has it
  ParameterCount parameters;
  double step_flops = 0;
  std::int64_t steps = 0;  // 0: as many as the data gives
  std::optional<double> step_seconds;
  double peak_gflops = 0;  // the machine's

  Json to_json() const;
};

Plan make_plan(
    const Recipe& recipe,
    const PlannedModel& model,
    const PlanMachine& machine
);

// Throws OutOfMemory with the advice when the plan does not fit.
void check_fits(const Plan& plan);

// Rows of a micro-batch as the recipe has it, and the limits of its change.
struct BatchChoice {
  std::int64_t rows = 1;  // the recipe's, or what is usual
  std::int64_t all = 1;   // of a whole step
  bool pinned = false;
};
BatchChoice batch_choice(const Recipe& recipe);

// Arithmetic of training on one token of a row that long.
double training_flops(
    const models::DecoderConfig& model,
    const ParameterCount& parameters,
    bool adapters,
    std::int64_t length
);

}  // namespace hearth::train
