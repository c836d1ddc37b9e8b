#include "hearth/io/tensor_type.h"

#include <array>

namespace hearth::io {
namespace {

struct Row {
  TensorUnit unit;
  std::string_view name;
  bool floating = false;
};

// In the order of the enum.
constexpr std::array<Row, 19> kTypes{{
    {{1, 8}, "f64", true},  {{1, 4}, "f32", true}, {{1, 2}, "f16", true},
    {{1, 2}, "bf16", true}, {{1, 8}, "i64"},       {{1, 4}, "i32"},
    {{1, 2}, "i16"},        {{1, 1}, "i8"},        {{1, 8}, "u64"},
    {{1, 4}, "u32"},        {{1, 2}, "u16"},       {{1, 1}, "u8"},
    {{1, 1}, "bool"},       {{32, 18}, "q4_0"},    {{32, 20}, "q4_1"},
    {{32, 34}, "q8_0"},     {{256, 144}, "q4_k"},  {{256, 176}, "q5_k"},
    {{256, 210}, "q6_k"},
}};

const Row& row(TensorType type) {
  return kTypes.at(static_cast<std::size_t>(type));
}

}  // namespace

TensorUnit unit_of(TensorType type) {
  return row(type).unit;
}

bool is_quantized(TensorType type) {
  return row(type).unit.elements > 1;
}

bool is_floating(TensorType type) {
  return row(type).floating;
}

std::string_view name_of(TensorType type) {
  return row(type).name;
}

}  // namespace hearth::io
