#pragma once
// What the host tells a device about rows: numbers of tokens, places and pages.
#include <vector>

#include <mlx/mlx.h>

namespace hearth::infer {

inline mlx::core::array ints(
    const std::vector<int>& values,
    const mlx::core::Shape& shape
) {
  return mlx::core::array(values.data(), shape, mlx::core::int32);
}

}  // namespace hearth::infer
