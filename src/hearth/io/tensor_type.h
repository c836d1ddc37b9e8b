#pragma once
// The element types that model files hold, and how many bytes they take.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hearth/base/block_format.h"

namespace hearth::io {

enum class TensorType {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  // Blocks of quantised weights, GGUF's own, in the order of kBlockFormats
  // (base/block_format.h). A row is a whole number of them.
  q8_0,
  q4_0,
  q4_1,
  q4_k,
  q5_k,
  q6_k,
};

// Elements and bytes of the smallest piece a type is made of: 1 and its size
// for plain ones, a block for quantised ones.
struct TensorUnit {
  std::size_t elements = 1, bytes = 1;
};
TensorUnit unit_of(TensorType type);
bool is_quantized(TensorType type);
bool is_floating(TensorType type);  // f64, f32, f16, bf16
std::string_view name_of(TensorType type);
// Null for a type that is not made of blocks.
const BlockFormat* block_of(TensorType type);
// The type whose blocks those are.
TensorType block_type(const BlockFormat& block);

}  // namespace hearth::io
