#include "hearth/train/loop/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_tokenizer.h"
#include "hearth/models/adapters.h"
#include "hearth/models/load.h"
#include "hearth/models/quant_target.h"
#include "hearth/models/write_config.h"
#include "hearth/nn/init.h"
#include "hearth/train/loop/run_model.h"
#include "hearth/train/plan/planner.h"
#include "hearth/train/plan/positions.h"

namespace hearth::train {
namespace {

mx::Dtype compute_of(const std::string& precision) {
  if (precision == "fp32") return mx::float32;
  return precision == "bf16" ? mx::bfloat16 : mx::float16;
}

models::PackedCopies packed_copies(const Recipe& recipe) {
  return recipe.train.packed == "head" ? models::PackedCopies::head
                                       : models::PackedCopies::all;
}

void make_new(Session& s) {
  const auto vocabulary = static_cast<int>(s.cache->manifest().vocabulary);
  const auto config = models::new_model(
      s.recipe.model, vocabulary, static_cast<int>(s.recipe.longest())
  );
  check_positions(s.recipe, config);
  s.model = std::make_unique<models::Decoder>(config);
  s.model_config = models::config_json(config);
  for (nn::Weight* p : s.model->parameters().all()) {
    nn::initialize(*p, s.recipe.run.seed, config.layers);
    p->trainable = true;
  }
  models::prepare(
      *s.model, s.compute, models::Use::training, packed_copies(s.recipe)
  );
}

// A tokenizer of its own must still be the one the embeddings are of.
void check_tokenizer(const Session& s) {
  if (!s.data.tokenizer_trained) return;
  const std::string& from = s.recipe.model.from;
  const auto run = parse_run_reference(from);
  try {
    const auto own = data::load_text_encoder(run ? run_tokenizer(*run) : from);
    if (own->hash() == s.data.encoder->text().hash()) return;
  } catch (const Error&) {
    return;  // The model has none to compare with.
  }
  throw UsageError(
      fmt::format(
          "data.tokenizer must be the one that {} was trained with, got one "
          "that was trained anew",
          from
      ),
      "leave data.tokenizer out to use the model's own"
  );
}

void check_rounded(models::Decoder& base, const models::QuantRules& asked) {
  for (const nn::Weight* p : base.parameters().all()) {
    if (!p->quantized() || p->format() == asked.of(p->name)) continue;
    throw UsageError(
        fmt::format(
            "lora.quantize_base must be 0 for a base that is quantised "
            "already, and {} is {}",
            p->name, p->format()->name()
        )
    );
  }
}

void load_base(Session& s) {
  check_tokenizer(s);
  const bool adapters = s.recipe.lora.has_value();
  models::LoadOptions options;
  options.use = adapters ? models::Use::frozen_base : models::Use::training;
  options.compute = s.compute;
  options.quantize = base_format(s.recipe);
  options.copies = packed_copies(s.recipe);
  auto loaded = models::load_model(open_base(s.recipe.model.from), options);
  if (options.quantize) check_rounded(*loaded.decoder, options.quantize);
  check_positions(s.recipe, loaded.decoder->config());
  s.base = loaded.source;
  s.model = std::move(loaded.decoder);
  s.model_config = s.base->config();
  if (s.model->config().vocab <
      static_cast<int>(s.cache->manifest().vocabulary)) {
    throw UsageError(
        fmt::format(
            "the tokenizer's {} tokens do not fit the model's embedding of {} "
            "rows",
            s.cache->manifest().vocabulary, s.model->config().vocab
        ),
        "use the model's own tokenizer: leave data.tokenizer out"
    );
  }
  if (!adapters) {
    for (nn::Weight* p : s.model->parameters().all()) p->trainable = true;
  }
}

void start_adapters(Session& s) {
  models::attach_adapters(*s.model, *s.base, *s.recipe.lora);
  const models::WeightPlan plan(models::Use::frozen_base, s.compute);
  for (nn::Weight* p : s.model->parameters().trainable()) {
    nn::initialize(*p, s.recipe.run.seed, s.model->config().layers);
    plan.settle(*p);
  }
  for (nn::Linear* linear : s.model->linears()) {
    if (linear->lora() != nullptr) linear->lora()->start_magnitude();
  }
  const std::string& from = s.recipe.model.adapter;
  if (!from.empty()) models::continue_adapter(*s.model, from, s.compute);
}

std::vector<std::string> objectives_of_pairs() {
  std::vector<std::string> names;
  for (const auto& kind : objective_kinds()) {
    if (kind.needs.pairs) names.push_back(kind.name);
  }
  return names;
}

// Both splits must be pairs, or neither.
void check_pairs(const Session& s) {
  const bool wanted = s.recipe.objective().needs.pairs;
  const std::string& name = s.recipe.train.objective;
  for (const auto split : {data::Split::kTrain, data::Split::kValid}) {
    for (const auto& set : s.cache->sets(split)) {
      if (set.documents() == 0 || set.pairs() == wanted) continue;
      throw UsageError(
          wanted ? fmt::format(
                       "train.objective {} must have records with chosen and "
                       "rejected answers, got records without",
                       name
                   )
                 : fmt::format(
                       "records with chosen and rejected answers must have "
                       "train.objective {}, got {}",
                       fmt::join(objectives_of_pairs(), " or "), name
                   )
      );
    }
  }
}

void check_held_out(const Session& s) {
  if (s.data.has_valid() || s.recipe.train.early_stop == 0) return;
  throw UsageError(
      fmt::format(
          "train.early_stop must have a held-out split, but data.valid: {} "
          "holds out none of {} documents",
          s.recipe.data.valid, s.data.result.report.documents
      ),
      "give a larger share or files of its own"
  );
}

// What was checked and planned by the kind must hold for what it made.
void check_groups(const ObjectiveKind& kind, const Objective& made) {
  if (made.row_group() == kind.needs.row_group) return;
  throw Error(
      fmt::format(
          "[train.open_session] the objective {} must keep as many rows "
          "together as its kind says, {}, got {}",
          kind.name, kind.needs.row_group, made.row_group()
      )
  );
}

}  // namespace

std::optional<kernels::QuantFormat> base_format(const Recipe& recipe) {
  if (!recipe.lora || recipe.lora->quantize_base == 0) return {};
  return models::parse_quant_target(std::to_string(recipe.lora->quantize_base));
}

void take_models_tokenizer(Recipe& recipe) {
  YamlNode& node = recipe.data.tokenizer;
  if (recipe.model.from.empty() || node.kind != YamlNode::Kind::kNull) return;
  const auto run = parse_run_reference(recipe.model.from);
  node.kind = YamlNode::Kind::kScalar;
  node.scalar = run ? run_tokenizer(*run) : recipe.model.from;
}

std::vector<bool> checkpointed_layers(const std::string& policy, int layers) {
  const auto n = static_cast<std::size_t>(layers);
  if (policy == "none" || policy == "auto") return {};
  if (policy == "all") return std::vector<bool>(n, true);
  const auto every = std::max(1UL, std::stoul(policy));
  std::vector<bool> flags(n);
  for (std::size_t i = 0; i < n; ++i) flags[i] = (i + 1) % every == 0;
  return flags;
}

Session open_session(Recipe recipe, const PrepareData& prepare) {
  recipe.check();
  take_models_tokenizer(recipe);
  Session s;
  s.compute = compute_of(recipe.train.precision);
  s.recipe = std::move(recipe);
  s.data = prepare(s.recipe.data);
  s.cache = std::make_shared<data::TokenCache>(s.data.cache);
  check_pairs(s);
  check_held_out(s);
  start_model(s);
  const ObjectiveKind& kind = s.recipe.objective();
  s.objective = kind.make(s);
  check_groups(kind, *s.objective);
  return s;
}

void start_model(Session& s) {
  s.model.reset();
  mx::clear_cache();
  if (s.recipe.model.from.empty()) {
    make_new(s);
  } else {
    load_base(s);
    if (s.recipe.lora) start_adapters(s);
  }
  s.model->set_checkpointing(checkpointed_layers(
      s.recipe.train.checkpointing, s.model->config().layers
  ));
}

data::LoaderConfig Session::train_loader() const {
  return train::train_loader(recipe, data.sources);
}

data::LoaderConfig train_loader(
    const Recipe& recipe,
    const std::vector<data::DataSource>& sources
) {
  auto config = data::loader_config(
      recipe.data, sources, recipe.step_tokens(), recipe.run.seed
  );
  const auto& t = recipe.train;
  const ObjectiveNeeds& needs = recipe.objective().needs;
  config.arrange = needs.arrange.value_or(config.arrange);
  if (!t.seq_lengths.empty()) {
    config.shapes.clear();
    const double even = 1.0 / static_cast<double>(t.seq_lengths.size());
    for (std::size_t i = 0; i < t.seq_lengths.size(); ++i) {
      config.shapes.push_back(
          {static_cast<std::uint32_t>(t.seq_lengths[i]),
           t.shape_probs.empty() ? even : t.shape_probs[i]}
      );
    }
    config.guarantee = static_cast<std::uint64_t>(t.shape_guarantee);
    config.tokens_per_batch = recipe.step_tokens();
  }
  return config;
}

std::vector<std::int64_t> row_lengths(const Recipe& recipe) {
  const auto lengths = data::row_lengths(train_loader(recipe, {}));
  return {lengths.begin(), lengths.end()};
}

data::LoaderConfig Session::valid_loader() const {
  data::DataConfig rows = recipe.data;
  rows.length = recipe.longest();
  auto config =
      data::loader_config(rows, data.sources, recipe.step_tokens(), 0);
  const ObjectiveNeeds& needs = recipe.objective().needs;
  config.arrange = needs.arrange.value_or(config.arrange);
  config.split = data::Split::kValid;
  config.shuffle = false;
  config.epochs = 1;
  config.workers = 0;
  config.weights.clear();
  return config;
}

double Session::flops_per_token(std::int64_t length) const {
  ParameterCount count;
  for (const nn::Weight* p : model->parameters().all()) {
    count.all += p->elements();
    // A table that is only gathered from multiplies nothing.
    if (p == &model->embedding() && p != &model->head()) {
      count.gathered += p->elements();
    }
  }
  count.trained = model->parameters().count(true);
  return training_flops(
      model->config(), count, recipe.lora.has_value(), length
  );
}

}  // namespace hearth::train
