#pragma once
// Rows of a batch as arrays: what one pass through the model takes.
#include <cstdint>
#include <optional>
#include <vector>

#include <mlx/mlx.h>

#include "hearth/base/random.h"
#include "hearth/data/loader/loader.h"

namespace hearth::train {
namespace mx = mlx::core;

struct MicroBatch {
  mx::array ids{0}, targets{0}, positions{0};  // int32 [rows, length]
  mx::array weights{0.0f};                     // float32 [rows, length]
  std::optional<mx::array> segments;  // absent where a row is one document
  std::optional<mx::array> noise;     // uint64, one key a token
  // What the objective reads beside them (Objective::attach), rows first.
  std::vector<mx::array> extra = {};
  int rows = 0, length = 0;
};

// Rows [begin, end). `noise`, where given, is the key of this optimiser step:
// each token's own key is folded from it, its document and its place there, so
// that the same token sees the same noise however rows are cut.
MicroBatch make_micro_batch(
    const data::Batch& batch,
    std::uint32_t begin,
    std::uint32_t end,
    std::optional<RandomKey> noise = {}
);

}  // namespace hearth::train
