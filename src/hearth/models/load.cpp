#include "hearth/models/load.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/models/family.h"
#include "hearth/models/tensor_read.h"
#include "hearth/ops/arithmetic.h"

namespace hearth::models {
namespace {

std::string layer_of(const std::string& name) {
  constexpr std::string_view kEnd = ".weight";
  return name.ends_with(kEnd) ? name.substr(0, name.size() - kEnd.size())
                              : name;
}

// Some checkpoints were saved from the body of the model, without its prefix.
std::string without_prefix(const std::string& name) {
  for (const std::string_view prefix : {"model.", "transformer."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

StoredMatrix find_stored(
    const io::ModelSource& source,
    const std::string& name
) {
  if (!name.ends_with(".weight")) {
    StoredMatrix m;
    m.codes = source.find(name);
    if (m.codes == nullptr) m.codes = source.find(without_prefix(name));
    return m;
  }
  StoredMatrix m = find_matrix(source, layer_of(name));
  if (m.codes != nullptr) return m;
  return find_matrix(source, layer_of(without_prefix(name)));
}

[[noreturn]] void throw_missing(
    const io::ModelSource& source,
    const std::string& name
) {
  throw FormatError::at(
      source.path(), 0, fmt::format("tensor {} is missing from the model", name)
  );
}

class Loading {
 public:
  Loading(
      const io::ModelSource& source,
      const LoadOptions& options,
      mx::Dtype compute
  )
      : source_(source), options_(options), compute_(compute) {}

  void fill(nn::Parameter& p, bool gathered) {
    const StoredMatrix m = find_stored(source_, p.name);
    if (m.codes == nullptr) throw_missing(source_, p.name);
    for (const auto* t : {m.codes, m.scales, m.biases}) {
      if (t == nullptr) continue;
      used_.insert(t->name);
      bytes_ += t->bytes;
    }
    check_stored(m, p.shape, p.transposed);
    if (options_.use == Use::described) return;
    if (m.format) {
      fill_quantized(p, m, gathered);
    } else {
      p.set(read_dense(source_, *m.codes, p.shape, p.transposed, dtype_for(p)));
    }
    for (const auto* t : {m.codes, m.scales, m.biases}) {
      if (t != nullptr) source_.release(*t);
    }
    if (options_.progress) options_.progress(bytes_);
  }

  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const auto& t : source_.tensors()) {
      if (!used_.contains(t.name)) names.push_back(t.name);
    }
    return names;
  }

 private:
  const io::ModelSource& source_;
  const LoadOptions& options_;
  mx::Dtype compute_;
  std::set<std::string, std::less<>> used_;
  std::size_t bytes_ = 0;

  // Vectors are float32 whatever the products are.
  mx::Dtype dtype_for(const nn::Parameter& p) const {
    const bool wide = options_.use == Use::training || p.shape.size() == 1;
    return wide ? mx::float32 : compute_;
  }

  // A table that is gathered from has dense rows; as a tied head it may be
  // multiplied in its quantised form as well.
  void fill_quantized(nn::Parameter& p, const StoredMatrix& m, bool gathered) {
    auto weight = read_quantized(source_, m, p.shape);
    const bool keep =
        options_.keep_quantized && p.matrix && options_.use != Use::training;
    if (keep) p.set(weight);
    if (gathered || !keep) {
      auto dense = weight->dequantize(dtype_for(p));
      dense.eval();
      p.set(std::move(dense));
    }
  }
};

mx::Dtype compute_of(const io::ModelSource& source) {
  const bool wide = std::ranges::all_of(source.tensors(), [](const auto& t) {
    return t.type == io::TensorType::f32;
  });
  return wide ? mx::float32 : mx::bfloat16;
}

}  // namespace

std::string config_name(const io::ModelSource& source) {
  return source.path().ends_with(".gguf") ? source.path()
                                          : source.path() + "/config.json";
}

mx::array read_parameter(
    const io::ModelSource& source,
    const nn::Parameter& p
) {
  const StoredMatrix m = find_stored(source, p.name);
  if (m.codes == nullptr) throw_missing(source, p.name);
  auto w =
      m.format
          ? read_quantized(source, m, p.shape)->dequantize(mx::float32)
          : read_dense(source, *m.codes, p.shape, p.transposed, mx::float32);
  w.eval();
  for (const auto* t : {m.codes, m.scales, m.biases}) {
    if (t != nullptr) source.release(*t);
  }
  return w;
}

void reload(LoadedModel& model, nn::Parameter& p) {
  Decoder& decoder = *model.decoder;
  p.packed.reset();
  p.quantized.reset();
  Loading loading(*model.source, model.options, model.compute);
  loading.fill(p, &p == &decoder.embedding());
  prepare(decoder, p, model.compute, model.options.use);
}

void replace(LoadedModel& model, nn::Parameter& p, const mx::array& value) {
  const bool wide =
      model.options.use == Use::training || model.compute == mx::float32;
  auto v = mx::contiguous(wide ? value : ops::cast(value, model.compute));
  v.eval();
  p.packed.reset();
  p.quantized.reset();
  p.set(std::move(v));
  prepare(*model.decoder, p, model.compute, model.options.use);
}

mx::array row_norms(const io::ModelSource& source, const nn::Parameter& p) {
  const auto w = read_parameter(source, p);
  auto norms = mx::sqrt(mx::sum(mx::square(w), -1));
  norms.eval();
  return norms;
}

// The fused loss takes the head, and the embedding is gathered from, as plain
// rows; other frozen matrices are only packed.
void prepare(
    const Decoder& decoder,
    nn::Parameter& p,
    mx::Dtype compute,
    Use use
) {
  if (!ops::on_cpu({}) || !p.filled) return;
  if (!p.matrix || p.quantized || p.value.size() == 0) return;
  nn::pack(
      p, compute,
      use == Use::inference ? ops::PackedOrders::forward
                            : ops::PackedOrders::both
  );
  const bool plain = &p == &decoder.head() || &p == &decoder.embedding();
  if (use != Use::training && !plain && !p.trainable) p.drop_value();
}

void prepare(Decoder& decoder, mx::Dtype compute, Use use) {
  for (nn::Parameter* p : decoder.parameters().all()) {
    prepare(decoder, *p, compute, use);
  }
}

LoadedModel load_model(
    std::shared_ptr<const io::ModelSource> source,
    const LoadOptions& options
) {
  LoadedModel model;
  model.compute = options.compute.value_or(compute_of(*source));
  model.options = options;
  model.options.progress = nullptr;
  model.decoder = std::make_unique<Decoder>(
      parse_config(source->config(), config_name(*source))
  );
  Decoder& decoder = *model.decoder;
  Loading loading(*source, options, model.compute);
  for (nn::Parameter* p : decoder.parameters().all()) {
    loading.fill(*p, p == &decoder.embedding());
    prepare(decoder, *p, model.compute, options.use);
  }
  model.unused = loading.unused();
  model.source = std::move(source);
  return model;
}

LoadedModel load_model(const std::string& path, const LoadOptions& options) {
  return load_model(io::open_model(path), options);
}

}  // namespace hearth::models
