#include "hearth/io/tensor_type.h"

#include <array>

namespace hearth::io {
namespace {

struct Row {
  TensorUnit unit;
  std::string_view name;
  bool floating = false;
};

// In the order of the enum, up to the blocks.
constexpr std::array<Row, 13> kPlain{{
    {{1, 8}, "f64", true},
    {{1, 4}, "f32", true},
    {{1, 2}, "f16", true},
    {{1, 2}, "bf16", true},
    {{1, 8}, "i64"},
    {{1, 4}, "i32"},
    {{1, 2}, "i16"},
    {{1, 1}, "i8"},
    {{1, 8}, "u64"},
    {{1, 4}, "u32"},
    {{1, 2}, "u16"},
    {{1, 1}, "u8"},
    {{1, 1}, "bool"},
}};
static_assert(static_cast<std::size_t>(TensorType::q8_0) == kPlain.size());
static_assert(
    static_cast<std::size_t>(TensorType::q6_k) + 1 ==
    kPlain.size() + kBlockFormats.size()
);
// That each type's row is its own.
constexpr bool has_row(TensorType type, std::string_view name) {
  const auto at = static_cast<std::size_t>(type);
  if (at < kPlain.size()) return kPlain.at(at).name == name;
  return kBlockFormats.at(at - kPlain.size()).name == name;
}
static_assert(has_row(TensorType::f64, "f64"));
static_assert(has_row(TensorType::f32, "f32"));
static_assert(has_row(TensorType::f16, "f16"));
static_assert(has_row(TensorType::bf16, "bf16"));
static_assert(has_row(TensorType::i64, "i64"));
static_assert(has_row(TensorType::i32, "i32"));
static_assert(has_row(TensorType::i16, "i16"));
static_assert(has_row(TensorType::i8, "i8"));
static_assert(has_row(TensorType::u64, "u64"));
static_assert(has_row(TensorType::u32, "u32"));
static_assert(has_row(TensorType::u16, "u16"));
static_assert(has_row(TensorType::u8, "u8"));
static_assert(has_row(TensorType::boolean, "bool"));
static_assert(has_row(TensorType::q8_0, "q8_0"));
static_assert(has_row(TensorType::q4_0, "q4_0"));
static_assert(has_row(TensorType::q4_1, "q4_1"));
static_assert(has_row(TensorType::q4_k, "q4_k"));
static_assert(has_row(TensorType::q5_k, "q5_k"));
static_assert(has_row(TensorType::q6_k, "q6_k"));

Row row(TensorType type) {
  const BlockFormat* block = block_of(type);
  if (block == nullptr) return kPlain.at(static_cast<std::size_t>(type));
  return {
      {static_cast<std::size_t>(block->columns),
       static_cast<std::size_t>(block->bytes)},
      block->name
  };
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

const BlockFormat* block_of(TensorType type) {
  const auto at = static_cast<std::size_t>(type) - kPlain.size();
  return at < kBlockFormats.size() ? &kBlockFormats[at] : nullptr;
}

TensorType block_type(const BlockFormat& block) {
  return static_cast<TensorType>(
      kPlain.size() + static_cast<std::size_t>(&block - kBlockFormats.data())
  );
}

}  // namespace hearth::io
