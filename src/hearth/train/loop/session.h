#pragma once
// What a run works on: prepared data, a model with its trainable parameters,
// and the objective. Opened from a recipe; the loop adds optimiser and state.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/data/prepared_data.h"
#include "hearth/io/model_source.h"
#include "hearth/models/decoder.h"
#include "hearth/train/objectives/objective.h"
#include "hearth/train/recipe/recipe.h"

namespace hearth::train {

struct Session {
  Recipe recipe;
  data::PreparedData data;
  std::shared_ptr<const data::TokenCache> cache;
  std::unique_ptr<models::Decoder> model;
  mx::Dtype compute = mx::bfloat16;
  std::unique_ptr<Objective> objective;
  // The model it started from; null for a new one.
  std::shared_ptr<const io::ModelSource> base;
  Json model_config;  // config.json of what is trained
  // The planner's: the model has shapes and no numbers, and there are neither
  // data nor cache.
  bool planned = false;

  data::LoaderConfig train_loader() const;
  data::LoaderConfig valid_loader() const;
  // Arithmetic of training on one token of a row that long.
  double flops_per_token(std::int64_t length) const;
};

// Prepares data, builds or loads the model, attaches adapters. `prepare` makes
// the data ready, with whatever progress the caller shows.
using PrepareData = std::function<data::PreparedData(const data::DataConfig&)>;
Session open_session(Recipe recipe, const PrepareData& prepare);
// Makes or loads the session's model as it is at the start of a run; one that
// is there is let go of first.
void start_model(Session& session);

// A recipe without data.tokenizer takes the model's own.
void take_models_tokenizer(Recipe& recipe);

// How the recipe's batches are made of those sources.
data::LoaderConfig train_loader(
    const Recipe& recipe,
    const std::vector<data::DataSource>& sources
);

// The lengths that rows of its batches have, shortest first.
std::vector<std::int64_t> row_lengths(const Recipe& recipe);

// What lora.quantize_base rounds the frozen model to.
std::optional<kernels::QuantFormat> base_format(const Recipe& recipe);

// One flag a layer for train.checkpointing; empty for none. `auto` is what the
// planner has set; here it means none.
std::vector<bool> checkpointed_layers(const std::string& policy, int layers);

}  // namespace hearth::train
