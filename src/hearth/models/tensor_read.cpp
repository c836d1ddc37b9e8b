#include "hearth/models/tensor_read.h"

#include <atomic>
#include <bit>
#include <cmath>
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

float half_to_float(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t{h & 0x8000u} << 16;
  const std::uint32_t exponent = (h >> 10) & 31u, fraction = h & 1023u;
  if (exponent == 31) {
    return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  }
  if (exponent != 0) {
    return std::bit_cast<float>(
        sign | ((exponent + 112) << 23) | (fraction << 13)
    );
  }
  const float tiny = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -tiny : tiny;
}

float float_at(const std::byte* from, TensorType type, std::size_t i) {
  if (type == TensorType::f32) {
    float v = 0;
    std::memcpy(&v, from + i * 4, 4);
    return v;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, from + i * 2, 2);
  if (type == TensorType::f16) return half_to_float(bits);
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

// To nearest, ties to even; the value is finite.
std::uint16_t to_bf16(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Element i of the leaf is element source_of(i) of the file.
template <class T, class Index, class Narrow>
void convert(
    const TensorInfo& t,
    const std::byte* from,
    T* to,
    std::size_t count,
    Index source_of,
    Narrow narrow
) {
  std::atomic<bool> finite = true;
  ops::current_execution().pool.parallel_for(
      count, 1 << 16, [&](std::size_t begin, std::size_t end) {
        bool good = true;
        for (std::size_t i = begin; i < end; ++i) {
          const float v = float_at(from, t.type, source_of(i));
          good &= std::isfinite(v);
          to[i] = narrow(v);
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
  const auto into = [&](auto* to, auto narrow) {
    if (!transposed) {
      return convert(
          t, data.bytes.data(), to, leaf.size(),
          [](std::size_t i) { return i; }, narrow
      );
    }
    const auto rows = static_cast<std::size_t>(shape[0]);
    const auto cols = static_cast<std::size_t>(shape[1]);
    convert(
        t, data.bytes.data(), to, leaf.size(),
        [rows, cols](std::size_t i) { return (i % cols) * rows + i / cols; },
        narrow
    );
  };
  if (dtype == mx::float32) {
    into(leaf.data<float>(), [](float v) { return v; });
  } else {
    into(reinterpret_cast<std::uint16_t*>(leaf.data<void>()), to_bf16);
  }
  return leaf;
}

std::shared_ptr<const ops::QuantizedWeight> read_quantized(
    const io::ModelSource& source,
    const StoredMatrix& m,
    const mx::Shape& shape
) {
  const kernels::QuantFormat& f = *m.format;
  const int rows = shape.at(0), cols = shape.at(1);
  f.check("models.load", cols);
  const bool affine = m.scales != nullptr;
  const auto width = static_cast<int>(f.code_bytes(cols) / (affine ? 4 : 1));
  const std::vector<std::int64_t> want{rows, affine ? width : cols};
  if (m.codes->shape != want) {
    refuse(
        *m.codes, fmt::format(
                      "must have shape [{}] by the model's config, got [{}]",
                      fmt::join(want, ", "), fmt::join(m.codes->shape, ", ")
                  )
    );
  }
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
