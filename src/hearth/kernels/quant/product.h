#pragma once
// The quantised products as callers use them: sizes are checked, scratch is
// counted and work is shared out over a pool. Results do not depend on the
// pool's size.
#include <cstddef>
#include <span>

#include "hearth/base/thread_pool.h"
#include "hearth/kernels/quant/matmul.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {

// The arrays of a quantised matrix, as a file or a tensor library holds them.
struct QuantSpans {
  std::span<std::uint8_t> codes, scales, biases;
};
struct ConstQuantSpans {
  std::span<const std::uint8_t> codes, scales, biases;
};

// Throw UsageError unless every span is exactly as long as the format says.
// w is rows x cols, dense.
void quantize_matrix(
    const Table& table,
    ThreadPool& pool,
    const QuantFormat& format,
    std::span<const float> w,
    long rows,
    long cols,
    const QuantSpans& out
);
void dequantize_matrix(
    const Table& table,
    ThreadPool& pool,
    const QuantFormat& format,
    const ConstQuantSpans& in,
    long rows,
    long cols,
    std::span<float> w
);
void pack_matrix(
    ThreadPool& pool,
    const PackedLayout& layout,
    const ConstQuantSpans& in,
    std::span<std::uint8_t> packed
);
void unpack_matrix(
    ThreadPool& pool,
    const PackedLayout& layout,
    std::span<const std::uint8_t> packed,
    const QuantSpans& out
);

// Scratch bytes of the two products below for `rows` rows of activations.
std::size_t quant_product_scratch(
    const PackedLayout& layout,
    long rows,
    QuantCompute compute,
    int threads
);
std::size_t quant_gradient_scratch(
    const PackedLayout& layout,
    long rows,
    int threads
);

// y[rows x layout.rows] = x[rows x layout.cols] * W^T. scratch is 64-byte
// aligned and of the size above. noexcept: it runs on a stream's thread.
void quant_product(
    const Table& table,
    ThreadPool& pool,
    const PackedLayout& layout,
    const std::uint8_t* packed,
    QuantCompute compute,
    const QuantMatrix& x,
    long rows,
    const QuantMatrix& y,
    void* scratch
) noexcept;
// dx[rows x layout.cols] = dy[rows x layout.rows] * W, exact.
void quant_gradient(
    const Table& table,
    ThreadPool& pool,
    const PackedLayout& layout,
    const std::uint8_t* packed,
    const QuantMatrix& dy,
    long rows,
    const QuantMatrix& dx,
    void* scratch
) noexcept;

}  // namespace hearth::kernels
