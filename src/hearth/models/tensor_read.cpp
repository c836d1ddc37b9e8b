#include "hearth/models/tensor_read.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/leaf.h"

namespace hearth::models {
namespace {

using io::TensorInfo;
using io::TensorType;

[[noreturn]] void refuse(const TensorInfo& t, const std::string& what) {
  throw FormatError::at_offset(
      t.file, static_cast<std::size_t>(t.offset),
      fmt::format("tensor {} {}", t.name, what)
  );
}

void check_shape(const TensorInfo& t, const mx::Shape& shape, bool transposed) {
  std::vector<std::int64_t> want(shape.begin(), shape.end());
  if (transposed) std::swap(want.at(0), want.at(1));
  if (t.shape != want) {
    refuse(
        t, fmt::format(
               "must have shape [{}] by the model's config, got [{}]",
               fmt::join(want, ", "), fmt::join(t.shape, ", ")
           )
    );
  }
}

using kernels::Bf16;
using kernels::Fp16;

// Elements of a tensor in the order that a leaf has them.
class Elements {
 public:
  Elements(const TensorInfo& t, const std::byte* from, const mx::Shape& shape)
      : from_(from),
        type_(t.type),
        size_(t.type == TensorType::f32 ? 4 : 2),
        rows_(static_cast<std::size_t>(shape.at(0))),
        cols_(shape.size() > 1 ? static_cast<std::size_t>(shape[1]) : 1) {}

  // The file has the matrix the other way round.
  void turn() { turned_ = true; }

  // `count` of them from the i-th on, at most kPart, as float32.
  static constexpr std::size_t kPart = 512;
  void read(
      std::size_t i,
      std::size_t count,
      const kernels::MathKernels& math,
      float* to
  ) const {
    alignas(64) std::byte raw[kPart * 4];
    copy(i, count, raw);
    const auto n = static_cast<long>(count);
    if (type_ == TensorType::f32) {
      std::memcpy(to, raw, count * 4);
    } else if (type_ == TensorType::f16) {
      math.fp16_to_float(n, reinterpret_cast<const Fp16*>(raw), to);
    } else {
      math.bf16_to_float(n, reinterpret_cast<const Bf16*>(raw), to);
    }
  }

 private:
  const std::byte* from_;
  TensorType type_;
  std::size_t size_, rows_, cols_;
  bool turned_ = false;

  // A file may have them at any address.
  void copy(std::size_t i, std::size_t count, std::byte* raw) const {
    if (!turned_) {
      std::memcpy(raw, from_ + i * size_, count * size_);
      return;
    }
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t at = (i + k) % cols_ * rows_ + (i + k) / cols_;
      std::memcpy(raw + k * size_, from_ + at * size_, size_);
    }
  }
};

// NaN and infinity have all bits of the exponent.
bool all_finite(const float* v, std::size_t n) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(v[i]) & kExponent);
  }
  return largest != kExponent;
}

void convert(const TensorInfo& t, const Elements& from, mx::array& leaf) {
  const auto run = ops::current_execution();
  const bool wide = leaf.dtype() == mx::float32;
  std::atomic<bool> finite = true;
  run.pool.parallel_for(
      leaf.size(), 1 << 16, [&](std::size_t begin, std::size_t end) {
        bool good = true;
        float part[Elements::kPart];
        for (std::size_t i = begin; i < end; i += Elements::kPart) {
          const std::size_t n = std::min(Elements::kPart, end - i);
          float* to = wide ? leaf.data<float>() + i : part;
          from.read(i, n, *run.kernels.math, to);
          good &= all_finite(to, n);
          if (wide) continue;
          run.kernels.math->float_to_bf16(
              static_cast<long>(n), to,
              static_cast<Bf16*>(leaf.data<void>()) + i
          );
        }
        if (!good) finite = false;
      }
  );
  if (!finite) {
    refuse(
        t,
        "must hold finite numbers, got NaN or infinity; the file is damaged "
        "or its training diverged"
    );
  }
}

mx::array bytes_array(
    const io::ModelSource& source,
    const TensorInfo& t,
    mx::Shape shape,
    mx::Dtype dtype
) {
  auto leaf =
      ops::make_leaf(std::move(shape), dtype, MemoryZone::named("weights"));
  const auto data = source.data(t);
  if (leaf.nbytes() != data.bytes.size()) {
    refuse(
        t, fmt::format(
               "must be {} bytes, got {}", leaf.nbytes(), data.bytes.size()
           )
    );
  }
  std::memcpy(leaf.data<void>(), data.bytes.data(), data.bytes.size());
  return leaf;
}

std::optional<kernels::QuantFormat> gguf_format(TensorType type) {
  using kernels::QuantFormat;
  using kernels::QuantKind;
  switch (type) {
    case TensorType::q8_0:
      return QuantFormat::gguf(QuantKind::kQ8_0);
    case TensorType::q4_0:
      return QuantFormat::gguf(QuantKind::kQ4_0);
    case TensorType::q4_1:
      return QuantFormat::gguf(QuantKind::kQ4_1);
    case TensorType::q4_k:
      return QuantFormat::gguf(QuantKind::kQ4_K);
    case TensorType::q5_k:
      return QuantFormat::gguf(QuantKind::kQ5_K);
    case TensorType::q6_k:
      return QuantFormat::gguf(QuantKind::kQ6_K);
    default:
      return {};
  }
}

mx::Dtype dtype_of(const TensorInfo& t) {
  switch (t.type) {
    case TensorType::f16:
      return mx::float16;
    case TensorType::bf16:
      return mx::bfloat16;
    case TensorType::f32:
      return mx::float32;
    default:
      refuse(t, "must be f16, bf16 or f32");
  }
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
    refuse(scales, "needs 'quantization' in config.json, which has none");
  }
  if (q->contains(layer) && (*q)[layer].is_object()) q = &(*q)[layer];
  const auto number = [&](const char* key) {
    const auto at = q->find(key);
    if (at == q->end() || !at->is_number_integer()) {
      refuse(scales, fmt::format("needs quantization.{} as an integer", key));
    }
    return at->get<int>();
  };
  const auto mode = q->find("mode");
  if (mode != q->end() && *mode != Json("affine")) {
    refuse(
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
  m.format = affine_format(source, layer, *m.scales);
  if (m.biases == nullptr) refuse(*m.scales, "must come with biases");
  return m;
}

void check_stored(const StoredMatrix& m, const mx::Shape& shape, bool turned) {
  if (!m.format) return check_shape(*m.codes, shape, turned);
  // A GGUF file has GPT-2's quantised weights the way products want them.
  if (shape.size() != 2 || turned != m.codes->transposed) {
    refuse(*m.codes, "must not be quantised here");
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
  if (t.type != TensorType::f32 && t.type != TensorType::f16 &&
      t.type != TensorType::bf16) {
    refuse(
        t, fmt::format("must be f32, f16 or bf16, got {}", io::name_of(t.type))
    );
  }
  auto leaf = ops::make_leaf(shape, dtype, MemoryZone::named("weights"));
  const auto data = source.data(t);
  Elements elements(t, data.bytes.data(), shape);
  if (transposed) elements.turn();
  convert(t, elements, leaf);
  return leaf;
}

std::shared_ptr<const ops::QuantizedWeight> read_quantized(
    const io::ModelSource& source,
    const StoredMatrix& m,
    const mx::Shape& shape
) {
  check_stored(m, shape, m.codes->transposed);
  const kernels::QuantFormat& f = *m.format;
  const int rows = shape.at(0), cols = shape.at(1);
  const bool affine = m.scales != nullptr;
  const int width = code_columns(m, cols);
  ops::QuantizedArrays arrays{
      bytes_array(
          source, *m.codes, {rows, width}, affine ? mx::uint32 : mx::uint8
      ),
      {},
      {}
  };
  if (affine) {
    const mx::Shape groups{rows, static_cast<int>(f.scale_count(cols))};
    arrays.scales = bytes_array(source, *m.scales, groups, dtype_of(*m.scales));
    arrays.biases = bytes_array(source, *m.biases, groups, dtype_of(*m.biases));
  }
  return std::make_shared<const ops::QuantizedWeight>(f, cols, arrays);
}

}  // namespace hearth::models
