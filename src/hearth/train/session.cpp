#include "hearth/train/session.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/models/adapters.h"
#include "hearth/models/load.h"
#include "hearth/models/write_config.h"
#include "hearth/nn/init.h"
#include "hearth/train/planner.h"
#include "hearth/train/preference.h"

namespace hearth::train {
namespace {

mx::Dtype compute_of(const std::string& precision) {
  if (precision == "fp32") return mx::float32;
  return precision == "bf16" ? mx::bfloat16 : mx::float16;
}

// A recipe without data.tokenizer takes the model's own.
void take_models_tokenizer(Recipe& recipe) {
  YamlNode& node = recipe.data.tokenizer;
  if (recipe.model.from.empty() || node.kind != YamlNode::Kind::kNull) return;
  node.kind = YamlNode::Kind::kScalar;
  node.scalar = recipe.model.from;
}

void make_new(Session& s) {
  const auto vocabulary = static_cast<int>(s.cache->manifest().vocabulary);
  const auto config = models::new_model(
      s.recipe.model, vocabulary, static_cast<int>(s.recipe.longest())
  );
  s.model = std::make_unique<models::Decoder>(config);
  s.model_config = models::config_json(config);
  for (nn::Parameter* p : s.model->parameters().all()) {
    nn::initialize(*p, s.recipe.run.seed, config.layers);
    p->trainable = true;
  }
  models::prepare(*s.model, s.compute, models::Use::training);
}

void load_base(Session& s) {
  const bool adapters = s.recipe.lora.has_value();
  auto loaded = models::load_model(
      s.recipe.model.from,
      {.use = adapters ? models::Use::frozen_base : models::Use::training,
       .compute = s.compute}
  );
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
    for (nn::Parameter* p : s.model->parameters().all()) p->trainable = true;
  }
}

void start_adapters(Session& s) {
  models::attach_adapters(*s.model, *s.base, *s.recipe.lora);
  for (nn::Parameter* p : s.model->parameters().trainable()) {
    nn::initialize(*p, s.recipe.run.seed, s.model->config().layers);
    if (p->matrix && ops::ours({}, s.compute)) {
      nn::pack(*p, s.compute, ops::PackedOrders::both);
    }
  }
  for (nn::Linear* linear : s.model->linears()) {
    if (linear->lora() != nullptr) linear->lora()->start_magnitude();
  }
  const std::string& from = s.recipe.model.adapter;
  if (!from.empty()) models::continue_adapter(*s.model, from, s.compute);
}

std::unique_ptr<Objective> make_objective(const Session& s) {
  const TrainSection& t = s.recipe.train;
  if (t.objective == "lm") {
    return std::make_unique<LanguageModel>(LanguageModelOptions{
        static_cast<float>(t.label_smoothing), static_cast<float>(t.z_loss),
        static_cast<float>(t.neftune)
    });
  }
  for (const auto& set : s.cache->sets(data::Split::kTrain)) {
    if (set.pairs()) continue;
    throw UsageError(
        "train.objective dpo must have records with chosen and rejected "
        "answers, got records without"
    );
  }
  // Without adapters the start has to be kept as a model of its own.
  std::shared_ptr<const models::Decoder> reference;
  if (!s.recipe.lora) {
    reference =
        models::load_model(
            s.base, {.use = models::Use::inference, .compute = s.compute}
        )
            .decoder;
  }
  return std::make_unique<Preference>(
      static_cast<float>(t.dpo_beta), std::move(reference)
  );
}

}  // namespace

void keep_head_packed_alone(models::Decoder& model) {
  for (const nn::Linear* linear : model.linears()) {
    if (linear->weight().trainable) linear->weight().packed.reset();
  }
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
  if (s.recipe.model.from.empty()) {
    make_new(s);
  } else {
    load_base(s);
    if (s.recipe.lora) start_adapters(s);
  }
  if (s.recipe.train.packed == "head") keep_head_packed_alone(*s.model);
  s.model->set_checkpointing(checkpointed_layers(
      s.recipe.train.checkpointing, s.model->config().layers
  ));
  s.objective = make_objective(s);
  return s;
}

data::LoaderConfig Session::train_loader() const {
  auto config = data::loader_config(
      recipe.data, data.sources, recipe.step_tokens(), recipe.run.seed
  );
  const auto& t = recipe.train;
  if (t.objective == "dpo") config.arrange = data::Arrange::kPad;
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

data::LoaderConfig Session::valid_loader() const {
  auto config =
      data::loader_config(recipe.data, data.sources, recipe.step_tokens(), 0);
  if (recipe.train.objective == "dpo") config.arrange = data::Arrange::kPad;
  config.split = data::Split::kValid;
  config.shuffle = false;
  config.epochs = 1;
  config.workers = 0;
  config.weights.clear();
  return config;
}

double Session::flops_per_token(std::int64_t length) const {
  ParameterCount count;
  for (const nn::Parameter* p : model->parameters().all()) {
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
