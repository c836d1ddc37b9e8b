#include "hearth/models/tensor_read.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/models/weight_fill.h"

namespace hearth::models {

void refuse_tensor(const io::TensorInfo& t, const std::string& what) {
  throw FormatError::at_offset(
      t.file, static_cast<std::size_t>(t.offset),
      fmt::format("tensor {} {}", t.name, what)
  );
}

namespace {

using io::TensorInfo;
using io::TensorType;

void check_shape(const TensorInfo& t, const mx::Shape& shape, bool transposed) {
  std::vector<std::int64_t> want(shape.begin(), shape.end());
  if (transposed) std::swap(want.at(0), want.at(1));
  if (t.shape != want) {
    refuse_tensor(
        t, fmt::format(
               "must have shape [{}] by the model's config, got [{}]",
               fmt::join(want, ", "), fmt::join(t.shape, ", ")
           )
    );
  }
}

std::optional<kernels::QuantFormat> gguf_format(TensorType type) {
  const BlockFormat* block = io::block_of(type);
  if (block == nullptr) return {};
  return kernels::QuantFormat::parse(block->name);
}

// MLX's settings for a layer: its own entry in the config, or the general one.
kernels::QuantFormat affine_format(
    const io::ModelSource& source,
    const std::string& layer,
    const TensorInfo& scales
) {
  const Json& config = source.config();
  const Json* q =
      config.contains("quantization") ? &config["quantization"] : nullptr;
  if (q == nullptr || !q->is_object()) {
    refuse_tensor(
        scales, "needs 'quantization' in config.json, which has none"
    );
  }
  if (q->contains(layer) && (*q)[layer].is_object()) q = &(*q)[layer];
  const auto number = [&](const char* key) {
    const auto at = q->find(key);
    if (at == q->end() || !at->is_number_integer()) {
      refuse_tensor(
          scales, fmt::format("needs quantization.{} as an integer", key)
      );
    }
    return at->get<int>();
  };
  const auto mode = q->find("mode");
  if (mode != q->end() && *mode != Json("affine")) {
    refuse_tensor(
        scales, "needs quantization.mode affine, got " + to_json_line(*mode)
    );
  }
  const auto type = scales.type == TensorType::f16 ? kernels::ScaleType::kF16
                    : scales.type == TensorType::bf16
                        ? kernels::ScaleType::kBf16
                        : kernels::ScaleType::kF32;
  return kernels::QuantFormat::affine(
      number("bits"), number("group_size"), type
  );
}

// Of the array that holds the codes: words of an affine matrix, else bytes.
int code_columns(const StoredMatrix& m, int cols) {
  const std::size_t bytes = m.format->code_bytes(cols);
  return static_cast<int>(m.scales != nullptr ? bytes / 4 : bytes);
}

}  // namespace

StoredMatrix find_matrix(
    const io::ModelSource& source,
    const std::string& layer
) {
  StoredMatrix m;
  m.codes = source.find(layer + ".weight");
  if (m.codes == nullptr) return m;
  m.format = gguf_format(m.codes->type);
  m.scales = source.find(layer + ".scales");
  if (m.scales == nullptr) return m;
  m.biases = source.find(layer + ".biases");
  if (m.scales->type != TensorType::f16 && m.scales->type != TensorType::bf16 &&
      m.scales->type != TensorType::f32) {
    refuse_tensor(*m.scales, "must be f16, bf16 or f32");
  }
  m.format = affine_format(source, layer, *m.scales);
  if (m.biases == nullptr) refuse_tensor(*m.scales, "must come with biases");
  if (m.biases->type != m.scales->type) {
    refuse_tensor(*m.biases, "must be of its scales' type");
  }
  return m;
}

void check_stored(
    const StoredMatrix& m,
    const mx::Shape& shape,
    bool transposed
) {
  if (!m.format) return check_shape(*m.codes, shape, transposed);
  // A GGUF file has GPT-2's quantised weights the way products want them.
  if (shape.size() != 2 || transposed != m.codes->transposed) {
    refuse_tensor(*m.codes, "must not be quantised here");
  }
  m.format->check("models.load", shape[1]);
  const int width = m.scales ? code_columns(m, shape[1]) : shape[1];
  check_shape(*m.codes, {shape[0], width}, false);
}

mx::array read_dense(
    const io::ModelSource& source,
    const TensorInfo& t,
    const mx::Shape& shape,
    bool transposed,
    mx::Dtype dtype
) {
  check_shape(t, shape, transposed);
  nn::Weight p({.shape = shape, .transposed = transposed});
  WeightFill fill(p, t, {.value = dtype});
  const auto data = source.data(t);
  fill.rows(0, shape.at(0), data.bytes.data());
  fill.finish();
  return p.value();
}

}  // namespace hearth::models
