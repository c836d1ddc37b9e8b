#pragma once
// The element types that model files hold, and how many bytes they take.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

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
  // Blocks of quantised weights, GGUF's own. A row is a whole number of them.
  q4_0,
  q4_1,
  q8_0,
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

}  // namespace hearth::io
