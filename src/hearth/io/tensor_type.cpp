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
