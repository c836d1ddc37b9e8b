#include "hearth/train/loop/run_source.h"

#include <cstring>

#include "hearth/base/json.h"
#include "hearth/train/loop/checkpoint_files_impl.h"

namespace hearth::train {

RunSource::RunSource(
    std::string folder,
    const std::string& checkpoint,
    std::optional<long> gate_step
)
    : folder_(std::move(folder)),
      config_(read_json_file(folder_ + "/config.json")),
      transposed_(config_.value("model_type", "") == "gpt2") {
  files::verify_checksum(checkpoint, files::kWeights);
  file_ = io::SafetensorsFile::open(checkpoint + "/" + files::kWeights);
  if (gate_step && config_.contains("gate")) {
    config_["gate"]["step"] = *gate_step;
  }
  for (io::TensorInfo t : file_->tensors()) {
    if (is_transposed(t)) std::swap(t.shape[0], t.shape[1]);
    tensors_.push_back(std::move(t));
  }
}

bool RunSource::is_transposed(const io::TensorInfo& t) const {
  return transposed_ && t.shape.size() == 2 &&
         t.name.find(".c_") != std::string::npos;
}

io::TensorData RunSource::data(const io::TensorInfo& t) const {
  const auto bytes = file_->bytes(t);
  if (!is_transposed(t)) return {bytes, file_};
  // Rows and columns as the reader will see them; the file has the other way.
  const auto rows = static_cast<std::size_t>(t.shape[0]);
  const auto cols = static_cast<std::size_t>(t.shape[1]);
  auto transposed = std::make_shared<std::vector<float>>(rows * cols);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < cols; ++c) {
      std::memcpy(
          &(*transposed)[r * cols + c],
          bytes.data() + (c * rows + r) * sizeof(float), sizeof(float)
      );
    }
  }
  return {std::as_bytes(std::span(*transposed)), transposed};
}

}  // namespace hearth::train
