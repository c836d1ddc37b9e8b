// Matrices that a file holds quantised: kept so, or widened, a few rows at a
// time from the file's own bytes.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/io/tensor_scan.h"
#include "hearth/models/tensor_read.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/quantized_fill.h"

namespace hearth::models {
namespace {

using io::TensorInfo;

// The bytes of one of a matrix's arrays; empty where the format has none.
struct StoredArray {
  io::TensorData data;
  std::size_t row_bytes = 0;

  const std::uint8_t* row(std::size_t r) const {
    return reinterpret_cast<const std::uint8_t*>(data.bytes.data()) +
           r * row_bytes;
  }
};

StoredArray open_array(
    const io::ModelSource& source,
    const TensorInfo* t,
    int rows,
    std::size_t row_bytes
) {
  StoredArray a;
  if (t == nullptr) return a;
  a.row_bytes = row_bytes;
  a.data = source.data(*t);
  const std::size_t want = static_cast<std::size_t>(rows) * row_bytes;
  if (a.data.bytes.size() != want) {
    refuse_tensor(
        *t, fmt::format("must be {} bytes, got {}", want, a.data.bytes.size())
    );
  }
  return a;
}

// Scales are numbers like any weight; codes are right whatever they are.
void check_finite(const TensorInfo& t, std::span<const std::byte> bytes) {
  const auto run = ops::current_execution();
  const std::size_t unit = io::unit_of(t.type).bytes;
  std::atomic<bool> finite = true;
  run.pool.parallel_for(
      bytes.size() / unit, 1 << 14, [&](std::size_t begin, std::size_t end) {
        const auto part = bytes.subspan(begin * unit, (end - begin) * unit);
        if (io::count_non_finite(t.type, part) > 0) finite = false;
      }
  );
  if (finite) return;
  refuse_tensor(
      t,
      "must hold finite numbers, got a scale that is NaN or infinity; the "
      "file is damaged"
  );
}

// A quantised matrix of a file, whole, as its arrays lie there.
struct StoredRows {
  kernels::QuantFormat format;
  int rows, cols;
  StoredArray codes, scales, biases;

  StoredRows(
      const io::ModelSource& source,
      const StoredMatrix& m,
      const mx::Shape& shape
  )
      : format(*m.format), rows(shape.at(0)), cols(shape.at(1)) {
    check_stored(m, shape, m.codes->transposed);
    const std::size_t size = kernels::size_of(format.scale);
    codes = open_array(source, m.codes, rows, format.code_bytes(cols));
    scales =
        open_array(source, m.scales, rows, format.scale_count(cols) * size);
    biases = open_array(source, m.biases, rows, format.bias_count(cols) * size);
    if (m.scales == nullptr) check_finite(*m.codes, codes.data.bytes);
    for (const auto* t : {m.scales, m.biases}) {
      if (t == nullptr) continue;
      check_finite(*t, (t == m.scales ? scales : biases).data.bytes);
    }
  }
};

mx::Dtype dtype_of(kernels::ScaleType type) {
  return type == kernels::ScaleType::kF16    ? mx::float16
         : type == kernels::ScaleType::kBf16 ? mx::bfloat16
                                             : mx::float32;
}

mx::array array_of(const StoredArray& a, int rows, mx::Dtype dtype) {
  const auto width = static_cast<int>(a.row_bytes / mx::size_of(dtype));
  auto leaf =
      ops::make_leaf({rows, width}, dtype, MemoryZone::named("weights"));
  std::memcpy(leaf.data<void>(), a.data.bytes.data(), a.data.bytes.size());
  return leaf;
}

}  // namespace

std::shared_ptr<const ops::QuantizedWeight> read_quantized(
    const io::ModelSource& source,
    const StoredMatrix& m,
    const mx::Shape& shape
) {
  const StoredRows stored(source, m, shape);
  if (!ops::on_cpu({})) {
    const bool affine = m.scales != nullptr;
    ops::QuantizedArrays arrays{
        array_of(stored.codes, stored.rows, affine ? mx::uint32 : mx::uint8),
        {},
        {}
    };
    if (affine) {
      const mx::Dtype type = dtype_of(stored.format.scale);
      arrays.scales = array_of(stored.scales, stored.rows, type);
      arrays.biases = array_of(stored.biases, stored.rows, type);
    }
    return std::make_shared<const ops::QuantizedWeight>(
        stored.format, stored.cols, arrays
    );
  }
  ops::QuantizedFill fill(stored.format, stored.rows, stored.cols);
  const kernels::QuantRows all{
      stored.codes.row(0), stored.scales.row(0), stored.biases.row(0)
  };
  ops::current_execution().pool.parallel_for(
      static_cast<std::size_t>(stored.rows), ops::QuantizedFill::kRowGrain,
      [&](std::size_t begin, std::size_t end) {
        fill.take_rows(all, static_cast<long>(begin), static_cast<long>(end));
      }
  );
  return fill.finish();
}

mx::array read_widened(
    const io::ModelSource& source,
    const StoredMatrix& m,
    const mx::Shape& shape,
    mx::Dtype dtype
) {
  const StoredRows stored(source, m, shape);
  auto leaf = ops::make_leaf(shape, dtype, MemoryZone::named("weights"));
  const auto run = ops::current_execution();
  constexpr std::size_t kGrain = 16;
  run.pool.parallel_for(
      static_cast<std::size_t>(stored.rows), kGrain,
      [&](std::size_t begin, std::size_t end) {
        // Aligned, which a file need not be.
        std::vector<std::uint64_t> room[3];
        const auto staged = [&](int i, const StoredArray& a, std::size_t row,
                                std::size_t n) {
          room[i].resize((n * a.row_bytes + 7) / 8);
          if (a.row_bytes > 0) {
            std::memcpy(room[i].data(), a.row(row), n * a.row_bytes);
          }
          return reinterpret_cast<const std::uint8_t*>(room[i].data());
        };
        const long cols = stored.cols;
        for (std::size_t r = begin; r < end; r += kGrain) {
          const std::size_t n = std::min(kGrain, end - r);
          const kernels::QuantRows in{
              staged(0, stored.codes, r, n), staged(1, stored.scales, r, n),
              staged(2, stored.biases, r, n)
          };
          const std::size_t at = r * static_cast<std::size_t>(cols);
          if (dtype == mx::float32) {
            run.kernels.quant_rows->dequantize(
                stored.format, in, static_cast<long>(n), cols,
                leaf.data<float>() + at, cols
            );
          } else {
            run.kernels.quant_rows->dequantize_bf16(
                stored.format, in, static_cast<long>(n), cols,
                static_cast<std::uint16_t*>(leaf.data<void>()) + at, cols
            );
          }
        }
      }
  );
  return leaf;
}

}  // namespace hearth::models
