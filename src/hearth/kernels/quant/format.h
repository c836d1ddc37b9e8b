#pragma once
// The quantised weight formats, each described once: how many bits a weight
// has, how many columns share a scale, how many bytes a row takes and where
// they lie. Loading, PTQ, QAT and export all read this description. It knows
// nothing of tensors, files or threads.
//
// Rows are independent. A row of an affine or symmetric format is three
// arrays (codes, scales, biases), a row of a GGUF format one array of blocks.
//   affine     w = scale * u + bias, u unsigned; MLX's layout: codes are one
//              little-endian bit stream, `bits` each, in 32-bit words.
//   symmetric  w = scale * q, q signed in +-(2^(bits-1) - 1), two's complement;
//              4-bit codes two to a byte, the even column in the low half.
//   q8_0 ...   llama.cpp's blocks, byte for byte.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::kernels {

enum class QuantKind : std::uint8_t {
  kAffine,
  kSymmetric,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

enum class ScaleType : std::uint8_t { kF16, kBf16, kF32 };

std::size_t size_of(ScaleType type) noexcept;

struct QuantFormat {
  QuantKind kind = QuantKind::kAffine;
  int bits = 4;
  // Columns that share a scale; 0: the whole row (per channel).
  int group = 64;
  ScaleType scale = ScaleType::kF16;

  // bits 2, 3, 4, 5, 6 or 8; group 32, 64 or 128.
  static QuantFormat affine(int bits, int group, ScaleType scale);
  // bits 4 or 8; group a multiple of 32, or 0 for per channel.
  static QuantFormat symmetric(
      int bits,
      int group,
      ScaleType scale = ScaleType::kF32
  );
  static QuantFormat gguf(QuantKind kind);
  // The inverse of name(); throws UsageError that says what is known.
  static QuantFormat parse(std::string_view name);

  // "affine4-g64-bf16", "int8-g32-f32", "int4-channel-f16", "q4_k"
  std::string name() const;
  bool is_gguf() const noexcept;
  // A row must be a whole number of these.
  long block_columns() const noexcept;
  // Bytes of a GGUF block, or of the codes of block_columns() columns.
  std::size_t block_bytes() const noexcept;

  // Per row of `cols` columns, which must have passed check().
  std::size_t code_bytes(long cols) const noexcept;
  std::size_t scale_count(long cols) const noexcept;
  std::size_t bias_count(long cols) const noexcept;
  // Everything a row takes, scales and biases included.
  std::size_t row_bytes(long cols) const noexcept;
  double bits_per_weight(long cols) const noexcept;

  // Throws UsageError "[who] ..." unless the format is one of those above and
  // cols is a positive multiple of block_columns().
  void check(std::string_view who, long cols) const;

  bool operator==(const QuantFormat&) const = default;
};

// Where the rows of a quantised matrix lie, each array dense. scales and
// biases are null where the format has none.
struct QuantRows {
  const std::uint8_t* codes = nullptr;
  const void* scales = nullptr;
  const void* biases = nullptr;
};
struct QuantRowsOut {
  std::uint8_t* codes = nullptr;
  void* scales = nullptr;
  void* biases = nullptr;
};

}  // namespace hearth::kernels
