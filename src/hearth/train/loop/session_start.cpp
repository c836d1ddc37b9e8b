#include "hearth/train/loop/session_start.h"

#include "hearth/models/adapters.h"
#include "hearth/models/load.h"
#include "hearth/train/plan/described_model.h"

namespace hearth::train {
namespace {

models::LoadOptions options_for(mx::Dtype compute) {
  return {.use = models::Use::inference, .compute = compute};
}

}  // namespace

std::shared_ptr<const models::Decoder> start_decoder(const Session& s) {
  if (!s.planned) {
    return models::load_model(s.base, options_for(s.compute)).decoder;
  }
  const auto& config = s.model->config();
  QuantizedMatrices quantized;
  if (s.base) quantized = start_formats(*s.base, config, s.compute);
  return described_start(config, quantized, s.compute);
}

std::shared_ptr<const nn::LoraSet> start_adapters(const Session& s) {
  if (s.planned) return described_adapters(*s.model, s.compute);
  return models::read_adapter(
      *s.model, *s.base, s.compute, s.recipe.model.adapter
  );
}

std::map<std::string, kernels::QuantFormat> start_formats(
    const io::ModelSource& source,
    const models::DecoderConfig& config,
    mx::Dtype compute
) {
  return models::quantized_formats(
      source, models::Blueprint(config), options_for(compute)
  );
}

}  // namespace hearth::train
