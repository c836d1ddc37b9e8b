#include "hearth/train/loop/merged_source.h"

#include <algorithm>
#include <set>

#include "hearth/models/loading.h"
#include "hearth/models/save.h"

namespace hearth::train {

MergedSource::MergedSource(models::LoadedModel model)
    : model_(std::move(model)), config_(model_.source->config()) {
  const auto gates = model_.decoder->gates();
  if (!gates.empty() && config_.contains("gate")) {
    config_["gate"]["step"] = gates.front()->step();
  }
  std::set<std::string> adapted;   // parameters
  std::set<std::string> replaced;  // tensors of the base
  for (const nn::Linear* linear : model_.decoder->linears()) {
    if (linear->lora() == nullptr) continue;
    const std::string& name = linear->weight().name;
    adapted.insert(name);
    const auto stored = models::find_stored(*model_.source, name);
    for (const auto* t : {stored.codes, stored.scales, stored.biases}) {
      if (t != nullptr) replaced.insert(t->name);
    }
  }
  for (const io::TensorInfo& t : model_.source->tensors()) {
    if (!replaced.contains(t.name)) tensors_.push_back(t);
  }
  for (auto& t : models::tensors_to_write(model_, io::TensorType::f32)) {
    if (!adapted.contains(t.name)) continue;
    io::TensorInfo info;
    info.name = t.name;
    info.type = t.type;
    info.shape = t.shape;
    info.bytes = io::bytes_of(t);
    info.file = path();
    tensors_.push_back(std::move(info));
    merged_.push_back(std::move(t));
  }
  std::ranges::sort(tensors_, {}, &io::TensorInfo::name);
}

const io::TensorToWrite* MergedSource::find_merged(
    const io::TensorInfo& tensor
) const {
  const auto at =
      std::ranges::find(merged_, tensor.name, &io::TensorToWrite::name);
  return at == merged_.end() ? nullptr : &*at;
}

io::TensorData MergedSource::data(const io::TensorInfo& tensor) const {
  const auto* merged = find_merged(tensor);
  return merged != nullptr ? merged->data() : model_.source->data(tensor);
}

void MergedSource::release(const io::TensorInfo& tensor) const {
  if (find_merged(tensor) == nullptr) model_.source->release(tensor);
}

}  // namespace hearth::train
