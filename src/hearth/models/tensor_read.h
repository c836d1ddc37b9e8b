#pragma once
// One tensor of a model file as the arrays a layer wants: widened to float32,
// rounded to bfloat16, or left quantised.
#include <memory>
#include <optional>
#include <string>

#include "hearth/io/model_source.h"
#include "hearth/ops/quantized_linear/weight.h"

namespace hearth::models {
namespace mx = mlx::core;

// The tensors that make one matrix. A dense one has `codes` alone.
struct StoredMatrix {
  const io::TensorInfo* codes = nullptr;
  const io::TensorInfo* scales = nullptr;
  const io::TensorInfo* biases = nullptr;
  // Set when it is quantised.
  std::optional<kernels::QuantFormat> format;
};

// What the source holds under a layer's name (without ".weight"). codes is null
// when it holds nothing.
StoredMatrix find_matrix(
    const io::ModelSource& source,
    const std::string& layer
);

// Throws FormatError when what is stored cannot be a parameter of that shape.
void check_stored(
    const StoredMatrix& stored,
    const mx::Shape& shape,
    bool transposed
);

// A dense tensor as a leaf of that shape (checked) in dtype, float32 or
// bfloat16. `transposed` says that the file holds a matrix the other way round.
// Throws FormatError for numbers that are not finite.
mx::array read_dense(
    const io::ModelSource& source,
    const io::TensorInfo& tensor,
    const mx::Shape& shape,
    bool transposed,
    mx::Dtype dtype
);

// Throws FormatError with the tensor's file, offset and name before `what`.
[[noreturn]] void refuse_tensor(
    const io::TensorInfo& tensor,
    const std::string& what
);

// A quantised matrix [rows, cols], checked, widened to float32 or bfloat16; its
// scales are finite.
mx::array read_widened(
    const io::ModelSource& source,
    const StoredMatrix& stored,
    const mx::Shape& shape,
    mx::Dtype dtype
);

}  // namespace hearth::models
