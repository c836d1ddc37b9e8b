#include "hearth/models/load.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/models/family.h"
#include "hearth/models/loading.h"
#include "hearth/models/packed_cache.h"
#include "hearth/models/tensor_read.h"
#include "hearth/ops/arithmetic/op.h"

namespace hearth::models {
namespace {

mx::Dtype compute_of(const io::ModelSource& source) {
  const bool wide = std::ranges::all_of(source.tensors(), [](const auto& t) {
    return t.type == io::TensorType::f32;
  });
  return wide ? mx::float32 : mx::bfloat16;
}

// Describing layers costs memory and time, so what cannot be is refused first.
void check_layers(const DecoderConfig& config, const io::ModelSource& source) {
  const std::size_t tensors = source.tensors().size();
  if (static_cast<std::size_t>(config.layers) <= tensors) return;
  throw FormatError::at(
      config_name(source), 0,
      fmt::format(
          "the model must have a tensor for each of its {} layers, got {} in "
          "all",
          config.layers, tensors
      )
  );
}

// What tools store beside the weights, and a head that is the embedding.
bool is_spare(const std::string& name, bool tied) {
  return name.ends_with("rotary_emb.inv_freq") ||
         name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         (tied && name.starts_with("lm_head."));
}

void warn_of_unused(const LoadedModel& model) {
  constexpr std::size_t kNamed = 3;
  const DecoderConfig& config = model.decoder->config();
  std::vector<std::string> names;
  for (const std::string& name : model.unused) {
    if (!is_spare(name, config.tie)) names.push_back(name);
  }
  if (names.empty()) return;
  const std::size_t all = names.size();
  names.resize(std::min(all, kNamed));
  log_warning(
      "{} of the model's tensors are not used, as its config describes {} "
      "layers without them: {}{}",
      all, config.layers, fmt::join(names, ", "), all > kNamed ? ", ..." : ""
  );
}

}  // namespace

std::string config_name(const io::ModelSource& source) {
  return source.path().ends_with(".gguf") ? source.path()
                                          : source.path() + "/config.json";
}

std::map<std::string, kernels::QuantFormat> quantized_formats(
    const io::ModelSource& source,
    const Blueprint& blueprint,
    const LoadOptions& options
) {
  const WeightPlan plan(
      options.use, options.compute.value_or(compute_of(source)),
      options.keep_quantized, options.quantize, options.copies
  );
  std::map<std::string, kernels::QuantFormat> formats;
  for (const nn::WeightSpec& w : blueprint.weights()) {
    const StoredMatrix stored = find_stored(source, w.name);
    check_stored(stored, w.shape, w.transposed);
    const auto held = plan.forms(w, stored.format).quantized;
    if (held) formats.emplace(w.name, *held);
  }
  return formats;
}

mx::array read_parameter(const io::ModelSource& source, const nn::Weight& p) {
  const StoredMatrix m = find_stored(source, p.name);
  auto w =
      m.format
          ? read_widened(source, m, p.shape, mx::float32)
          : read_dense(source, *m.codes, p.shape, p.transposed, mx::float32);
  for (const auto* t : {m.codes, m.scales, m.biases}) {
    if (t != nullptr) source.release(*t);
  }
  return w;
}

void reload(LoadedModel& model, nn::Weight& p) {
  p.clear();
  Loading loading(*model.source, model.options, model.compute);
  loading.add(p);
  loading.run();
}

void replace(LoadedModel& model, nn::Weight& p, const mx::array& value) {
  const bool wide =
      model.options.use == Use::training || model.compute == mx::float32;
  auto v = mx::contiguous(wide ? value : ops::cast(value, model.compute));
  v.eval();
  p.set(std::move(v));
  WeightPlan(model.options.use, model.compute, true, {}, model.options.copies)
      .settle(p);
}

mx::array row_norms(const io::ModelSource& source, const nn::Weight& p) {
  const auto w = p.quantized() ? p.quantized()->dequantize(mx::float32)
                               : read_parameter(source, p);
  auto norms = mx::sqrt(mx::sum(mx::square(w), -1));
  norms.eval();
  return norms;
}

void prepare(
    Decoder& decoder,
    mx::Dtype compute,
    Use use,
    PackedCopies copies
) {
  const WeightPlan plan(use, compute, true, {}, copies);
  for (nn::Weight* p : decoder.parameters().all()) plan.settle(*p);
}

namespace {

using Found = PackedCache::Found;

// Fills the decoder from what was found. False, with the reason in `found`,
// when that is broken.
bool take_packed(LoadedModel& model, Found& found) {
  const double start = seconds_now();
  LoadReport r;
  try {
    verify_packed(*found.file, r);
    fill_from_packed(found.file, *model.decoder);
  } catch (const Error& e) {
    found.state = Found::State::broken;
    found.why = e.what();
    return false;
  }
  r.seconds = seconds_now() - start;
  r.how = "packed cache";
  r.why = "it was preloaded";
  r.times.memory = r.seconds - r.times.read;
  r.bytes = found.file->size();
  for (const Json& name : found.file->about().value("kept_dense", Json())) {
    if (name.is_string()) r.kept_dense.push_back(name.get<std::string>());
  }
  r.shards.push_back(
      {.name = found.file->name(),
       .tensors = model.decoder->parameters().all().size(),
       .bytes = r.bytes,
       .seconds = r.seconds,
       .times = r.times}
  );
  model.report = std::move(r);
  return true;
}

// Writes anew what was stale or broken.
void pack_again(
    const LoadedModel& model,
    const PackedCache& cache,
    const Json& variant,
    const LoadOptions& options,
    bool broken
) {
  std::string said = "it was packed anew";
  try {
    const auto content = content_hash(*model.source, io::ReadMode::mapped);
    if (!cache.remember(*model.source, variant, content) || broken) {
      cache.store(model, variant, content);
    }
  } catch (const std::exception& e) {
    said = e.what();
  }
  if (options.note) options.note(said);
}

}  // namespace

LoadedModel load_model(
    std::shared_ptr<const io::ModelSource> source,
    const LoadOptions& options
) {
  LoadedModel model;
  model.compute = options.compute.value_or(compute_of(*source));
  model.options = options;
  model.options.progress = nullptr;
  model.options.note = nullptr;
  const auto config = parse_config(source->config(), config_name(*source));
  check_layers(config, *source);
  model.decoder = std::make_unique<Decoder>(config);
  auto loading = std::make_unique<Loading>(*source, options, model.compute);
  for (nn::Weight* p : model.decoder->parameters().all()) loading->add(*p);
  model.unused = loading->unused();
  if (options.warn_unused && options.use != Use::described) {
    warn_of_unused(model);
  }
  model.source = std::move(source);

  Found found;
  Json variant;
  const PackedCache cache(options.packed_cache);
  if (!options.packed_cache.empty() && options.use == Use::inference &&
      ops::on_cpu({})) {
    variant = packed_variant(options, model.compute);
    found = cache.find(*model.source, variant);
    if (found.state == Found::State::ready && take_packed(model, found)) {
      return model;
    }
  }
  const bool again = found.state != Found::State::none;
  if (again && options.note) {
    options.note("the packed weights are not used: " + found.why);
  }
  found.file.reset();
  for (nn::Weight* p : model.decoder->parameters().all()) p->clear();
  loading->run();
  model.report = loading->report();
  const bool broken = found.state == Found::State::broken;
  if (again) pack_again(model, cache, variant, options, broken);
  return model;
}

LoadedModel load_model(const std::string& path, const LoadOptions& options) {
  return load_model(io::open_model(path), options);
}

}  // namespace hearth::models
