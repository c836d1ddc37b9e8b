#pragma once
// GGUF's blocks of quantised weights, each described once: what files call
// them, how many columns and bytes a block has, where its scales lie. `io`
// reads tensors by this table and the kernels' formats are made of it, so a
// new type is a row here and the kernels that know its codes.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth {

struct BlockFormat {
  std::string_view name;
  std::uint32_t gguf;         // the type's number in a file
  int bits, group;            // of a weight; columns that share a scale
  int columns, bytes;         // of a block
  std::array<int, 2> halves;  // where half-precision scales lie; -1: none
};

// In the order of io::TensorType and kernels::QuantKind, which hold them
// against its size.
inline constexpr std::array kBlockFormats{
    BlockFormat{"q8_0", 8, 8, 32, 32, 34, {0, -1}},
    BlockFormat{"q4_0", 2, 4, 32, 32, 18, {0, -1}},
    BlockFormat{"q4_1", 3, 4, 32, 32, 20, {0, 2}},
    BlockFormat{"q4_k", 12, 4, 32, 256, 144, {0, 2}},
    BlockFormat{"q5_k", 13, 5, 32, 256, 176, {0, 2}},
    BlockFormat{"q6_k", 14, 6, 16, 256, 210, {208, -1}},
};

}  // namespace hearth
