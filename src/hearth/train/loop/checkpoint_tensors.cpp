// Arrays of a run to tensors of a file and back.
#include <array>
#include <limits>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/train/loop/checkpoint_tensors_impl.h"

namespace hearth::train {
namespace {

namespace mx = mlx::core;

struct TypePair {
  mx::Dtype dtype;
  io::TensorType type;
};
const std::array kTypes = {
    TypePair{mx::float32, io::TensorType::f32},
    TypePair{mx::bfloat16, io::TensorType::bf16},
    TypePair{mx::int64, io::TensorType::i64},
    TypePair{mx::int32, io::TensorType::i32},
    TypePair{mx::int8, io::TensorType::i8},
    TypePair{mx::uint8, io::TensorType::u8},
};

}  // namespace

io::TensorToWrite tensor_of(const optim::NamedArray& a) {
  for (const TypePair& pair : kTypes) {
    if (pair.dtype != a.array.dtype() || !a.array.is_available() ||
        !a.array.flags().row_contiguous) {
      continue;
    }
    return io::tensor_of(
        a.name, pair.type, {a.array.shape().begin(), a.array.shape().end()},
        {a.array.data<std::byte>(), a.array.nbytes()}
    );
  }
  throw UsageError(
      fmt::format(
          "[train.save_checkpoint] {} must be evaluated, row-major and of a "
          "type that checkpoints hold",
          a.name
      )
  );
}

optim::StoredArray stored_array(
    const io::TensorInfo& tensor,
    std::span<const std::byte> bytes
) {
  mx::Shape shape;
  for (const auto d : tensor.shape) {
    if (d > std::numeric_limits<int>::max()) {
      throw FormatError(
          fmt::format("{}: {} is too large", tensor.file, tensor.name)
      );
    }
    shape.push_back(static_cast<int>(d));
  }
  for (const TypePair& pair : kTypes) {
    if (pair.type == tensor.type) {
      return {tensor.name, pair.dtype, std::move(shape), bytes};
    }
  }
  throw FormatError(
      fmt::format(
          "{}: {} is of a type that checkpoints do not hold", tensor.file,
          tensor.name
      )
  );
}

}  // namespace hearth::train
