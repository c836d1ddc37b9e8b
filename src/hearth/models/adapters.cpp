#include "hearth/models/adapters.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/io/peft_adapter.h"
#include "hearth/models/tensor_read.h"
#include "hearth/ops/leaf.h"

namespace hearth::models {
namespace {

// An adapter file as a source that read_dense takes.
class AdapterSource : public io::ModelSource {
 public:
  AdapterSource(const io::PeftAdapter& adapter, const std::string& path)
      : adapter_(adapter), path_(path) {}
  const std::string& path() const override { return path_; }
  const Json& config() const override { return nothing_; }
  const Json& generation_config() const override { return nothing_; }
  std::span<const io::TensorInfo> tensors() const override { return {}; }
  io::TensorData data(const io::TensorInfo& tensor) const override {
    return adapter_.data(tensor);
  }

 private:
  const io::PeftAdapter& adapter_;
  const std::string& path_;
  Json nothing_;
};

io::PeftAdapter open_adapter(const std::string& folder) {
  auto adapter = io::PeftAdapter::open(folder);
  if (!adapter.saved().empty()) {
    throw FormatError::at(
        folder, 0,
        fmt::format(
            "an adapter that replaces whole weights ({}) is not understood",
            adapter.saved().front().name
        )
    );
  }
  return adapter;
}

// The adapter on the layer of that name; null where it has none.
const nn::Lora* adapter_on(Decoder& decoder, std::string_view layer) {
  for (const nn::Linear* linear : decoder.linears()) {
    if (linear->name() == layer) return linear->lora();
  }
  return nullptr;
}

// Reads every array of the file into the adapter of its layer, which
// find(name) gives.
template <class Find>
void fill(
    const io::PeftAdapter& adapter,
    const std::string& folder,
    const WeightPlan& plan,
    const Find& find
) {
  const AdapterSource source(adapter, folder);
  const auto one = [&](nn::Weight& p, const io::TensorInfo& t) {
    p.set(read_dense(source, t, p.shape, false, mx::float32));
    plan.settle(p);
  };
  for (const auto& m : adapter.modules()) {
    const nn::Lora* lora = find(m.name);
    // Whether there are magnitudes is the file's word for all its layers.
    if (lora == nullptr || (m.magnitude && lora->magnitude() == nullptr)) {
      throw FormatError::at(
          folder, 0, fmt::format("the model has no layer for {}", m.a.name)
      );
    }
    one(lora->a(), m.a);
    one(lora->b(), m.b);
    if (m.magnitude) one(*lora->magnitude(), *m.magnitude);
  }
}

}  // namespace

void check_targets(const Blueprint& blueprint, const nn::LoraConfig& config) {
  const auto layers = blueprint.projections();
  for (const std::string& target : config.targets) {
    const bool named = std::ranges::any_of(layers, [&](const auto* layer) {
      return nn::matches(target, layer->module());
    });
    if (named) continue;
    throw UsageError(
        fmt::format(
            "lora.targets must name layers of the model, got '{}'; it has "
            "layers such as {}",
            target, layers.front()->module()
        )
    );
  }
  if (config.targets.empty()) {
    throw UsageError("lora.targets must name layers of the model, got none");
  }
}

std::vector<const nn::WeightSpec*> lora_targets(
    const Blueprint& blueprint,
    const nn::LoraConfig& config
) {
  auto layers = blueprint.projections();
  std::erase_if(layers, [&](const auto* layer) {
    return std::ranges::none_of(config.targets, [&](const auto& target) {
      return nn::matches(target, layer->module());
    });
  });
  return layers;
}

void attach_adapters(
    Decoder& decoder,
    const io::ModelSource& base,
    const nn::LoraConfig& config
) {
  const Blueprint blueprint(decoder.config());
  check_targets(blueprint, config);
  const auto targets = lora_targets(blueprint, config);
  std::uint64_t index = 0;
  for (nn::Linear* linear : decoder.linears()) {
    const bool target = std::ranges::any_of(targets, [&](const auto* w) {
      return w->part == linear->weight().part;
    });
    if (!target) continue;
    nn::Lora& lora = linear->attach(decoder.parameters(), config, index++);
    if (config.dora) lora.set_base_norms(row_norms(base, linear->weight()));
  }
  for (nn::Weight* p : decoder.parameters().trainable()) {
    p->set(ops::make_leaf(p->shape, mx::float32, MemoryZone::named("weights")));
  }
}

void continue_adapter(
    Decoder& decoder,
    const std::string& folder,
    mx::Dtype compute
) {
  const auto adapter = open_adapter(folder);
  const auto& modules = adapter.modules();
  for (const nn::Linear* linear : decoder.linears()) {
    if (linear->lora() == nullptr) continue;
    const auto at =
        std::ranges::find(modules, linear->name(), &io::PeftModule::name);
    const nn::LoraConfig& own = linear->lora()->config();
    const bool fits =
        at != modules.end() && adapter.config().use_dora == own.dora &&
        static_cast<float>(adapter.config().scale_of(at->name)) == own.scale();
    if (!fits) {
      throw FormatError::at(
          folder, 0,
          fmt::format(
              "the adapter must have {} with the targets, rank, alpha and form "
              "of the recipe's lora",
              linear->name()
          )
      );
    }
  }
  fill(
      adapter, folder, WeightPlan(Use::frozen_base, compute),
      [&](const std::string& layer) { return adapter_on(decoder, layer); }
  );
}

namespace {

// The adapter's form at that layer; none where it leaves the layer alone.
std::optional<nn::LoraConfig> form_at(
    const io::PeftAdapter& adapter,
    const std::string& layer
) {
  const auto& modules = adapter.modules();
  const auto at = std::ranges::find(modules, layer, &io::PeftModule::name);
  if (at == modules.end()) return {};
  const io::PeftConfig& peft = adapter.config();
  nn::LoraConfig config;
  config.rank = static_cast<int>(peft.rank_of(layer));
  config.alpha = peft.scale_of(layer) * config.rank;
  config.dora = peft.use_dora;
  return config;
}

}  // namespace

void load_adapter(LoadedModel& model, const std::string& folder) {
  const auto adapter = open_adapter(folder);
  nn::ParameterSet& set = model.decoder->parameters();
  std::uint64_t index = 0;
  for (nn::Linear* linear : model.decoder->linears()) {
    const auto form = form_at(adapter, linear->name());
    if (!form) continue;
    nn::Lora& lora = linear->attach(set, *form, index++);
    if (form->dora) {
      lora.set_base_norms(row_norms(*model.source, linear->weight()));
    }
  }
  fill(
      adapter, folder, WeightPlan(Use::inference, model.compute),
      [&](const std::string& layer) {
        return adapter_on(*model.decoder, layer);
      }
  );
  for (nn::Weight* p : set.trainable()) p->trainable = false;
}

std::shared_ptr<const nn::LoraSet> read_adapter(
    const LoadedModel& model,
    const std::string& folder
) {
  return read_adapter(*model.decoder, *model.source, model.compute, folder);
}

std::shared_ptr<const nn::LoraSet> read_adapter(
    Decoder& decoder,
    const io::ModelSource& base,
    mx::Dtype compute,
    const std::string& folder
) {
  const auto adapter = open_adapter(folder);
  auto out = std::make_shared<nn::LoraSet>();
  std::uint64_t index = 0;
  for (const nn::Linear* linear : decoder.linears()) {
    const auto form = form_at(adapter, linear->name());
    if (!form) continue;
    auto lora = std::make_unique<nn::Lora>(
        out->parameters, linear->weight(), *form, index++
    );
    if (form->dora) {
      lora->set_base_norms(row_norms(base, linear->weight()));
    }
    out->layers.emplace(linear->name(), std::move(lora));
  }
  fill(
      adapter, folder, WeightPlan(Use::inference, compute),
      [&](const std::string& layer) { return out->of(layer); }
  );
  for (nn::Weight* p : out->parameters.trainable()) p->trainable = false;
  return out;
}

void merge_adapters(LoadedModel& model) {
  for (nn::Linear* linear : model.decoder->linears()) {
    if (linear->lora() == nullptr || linear->merged()) continue;
    nn::Weight& p = linear->weight();
    replace(model, p, linear->lora()->merged(read_parameter(*model.source, p)));
    linear->set_merged(true);
  }
}

void unmerge_adapters(LoadedModel& model) {
  for (nn::Linear* linear : model.decoder->linears()) {
    if (!linear->merged()) continue;
    reload(model, linear->weight());
    linear->set_merged(false);
  }
}

namespace {

io::TensorToWrite written(const nn::Weight& p) {
  return io::tensor_of(
      p.name, io::TensorType::f32, {p.shape.begin(), p.shape.end()},
      {static_cast<const std::byte*>(p.value().data<void>()),
       p.value().nbytes()}
  );
}

// The first adapter's settings are the file's; a module that differs gets its
// own rank and alpha.
void describe(const nn::Lora& lora, io::PeftConfig& config) {
  const nn::LoraConfig& own = lora.config();
  const std::string& name = lora.layer();
  if (config.targets.empty()) {
    config.rank = own.rank, config.alpha = own.alpha;
    config.dropout = own.dropout;
    config.use_dora = own.dora, config.use_rslora = own.rslora;
  }
  if (own.rank != config.rank) config.rank_pattern[name] = own.rank;
  if (own.alpha != config.alpha) config.alpha_pattern[name] = own.alpha;
  config.targets.push_back(name);
}

}  // namespace

void save_adapter(
    Decoder& decoder,
    const std::string& base,
    const std::string& folder,
    bool force
) {
  io::PeftConfig config;
  config.base_model = base;
  config.fan_in_fan_out = decoder.config().gpt2_layout;
  std::vector<io::PeftModuleToWrite> modules;
  for (const nn::Linear* linear : decoder.linears()) {
    const nn::Lora* lora = linear->lora();
    if (lora == nullptr) continue;
    describe(*lora, config);
    io::PeftModuleToWrite m;
    m.name = linear->name();
    m.a = written(lora->a());
    m.b = written(lora->b());
    if (lora->magnitude() != nullptr) m.magnitude = written(*lora->magnitude());
    modules.push_back(std::move(m));
  }
  if (modules.empty()) throw UsageError("the model has no adapter to write");
  io::write_peft_adapter(folder, config, std::move(modules), {}, force);
}

}  // namespace hearth::models
