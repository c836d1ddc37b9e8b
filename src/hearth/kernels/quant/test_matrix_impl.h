#pragma once
// What the quantisation tests share: every format, random weights, a matrix
// quantised into plain vectors. Tests only.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "hearth/base/block_format.h"
#include "hearth/base/random.h"
#include "hearth/kernels/quant/product.h"

namespace hearth::kernels {

inline std::vector<QuantFormat> every_format() {
  std::vector<QuantFormat> all;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    all.push_back(QuantFormat::affine(bits, 32, ScaleType::kF32));
    all.push_back(QuantFormat::affine(bits, 64, ScaleType::kF16));
    all.push_back(QuantFormat::affine(bits, 128, ScaleType::kBf16));
  }
  for (const int bits : {4, 8}) {
    all.push_back(QuantFormat::symmetric(bits, 0));
    all.push_back(QuantFormat::symmetric(bits, 32, ScaleType::kF16));
    all.push_back(QuantFormat::symmetric(bits, 96, ScaleType::kBf16));
    all.push_back(QuantFormat::symmetric(bits, 512));
  }
  for (const BlockFormat& block : kBlockFormats) {
    all.push_back(QuantFormat::parse(block.name));
  }
  return all;
}

// A column count that suits the format and is as awkward as it allows.
inline long some_columns(const QuantFormat& f) {
  const long block = f.block_columns();
  return block < 32 ? 102 : 3 * block;
}

inline std::vector<float> random_floats(std::size_t n, const char* name) {
  RandomStream random(RandomKey(7).fold(name));
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(random.normal());
  return x;
}

struct Quantized {
  QuantFormat format;
  long rows, cols;
  std::vector<std::uint8_t> codes, scales, biases;

  Quantized(const QuantFormat& f, long r, long c)
      : format(f), rows(r), cols(c) {
    const auto n = static_cast<std::size_t>(r);
    codes.resize(n * f.code_bytes(c));
    scales.resize(n * f.scale_count(c) * size_of(f.scale));
    biases.resize(n * f.bias_count(c) * size_of(f.scale));
  }
  QuantSpans spans() { return {codes, scales, biases}; }
  ConstQuantSpans view() const { return {codes, scales, biases}; }
  bool operator==(const Quantized&) const = default;
};

inline Quantized quantized(
    const Table& table,
    const QuantFormat& f,
    const std::vector<float>& w,
    long rows,
    long cols
) {
  Quantized q(f, rows, cols);
  quantize_matrix(table, shared_pool(), f, w, rows, cols, q.spans());
  return q;
}

inline std::vector<float> dequantized(const Table& table, const Quantized& q) {
  std::vector<float> w(static_cast<std::size_t>(q.rows * q.cols));
  dequantize_matrix(
      table, shared_pool(), q.format, q.view(), q.rows, q.cols, w
  );
  return w;
}

inline bool same_bits(
    const std::vector<float>& a,
    const std::vector<float>& b
) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace hearth::kernels
