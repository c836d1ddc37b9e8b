#pragma once
// Products of rows of activations with a model's matrices; each thread of a
// team does its share. With few rows the threads share the columns of the
// weights, with many the rows; none needs another's result before the next
// barrier.
#include <cstddef>
#include <span>
#include <vector>

#include "hearth/infer/cpu/model.h"
#include "hearth/infer/cpu/read_ahead.h"
#include "hearth/ops/execution.h"

namespace hearth::infer {

// How quantised matrices are multiplied.
enum class QuantWay : unsigned char {
  int8,   // activations rounded to bytes
  wide,   // weights widened to bf16 a few columns at a time
  exact,  // in float32
};

// Rows of one adapter.
struct AdapterRows {
  long begin = 0, end = 0;
  int adapter = -1;
};

// Activations in the forms that the matrices of one phase read.
struct ProductInput {
  const void* rows = nullptr;  // of the model's compute type, or float
  bool bf16 = true;
  long stride = 0, count = 0;
  QuantWay way = QuantWay::int8;
  std::span<const AdapterRows> adapters;
};

// y = x W^T (+ bias), or y += with `adds`, which is for float32 alone.
struct ProductOutput {
  void* data = nullptr;
  long stride = 0;
  bool bf16 = false, adds = false;
};

class CpuProducts {
 public:
  // Takes memory for at most so many rows at a time. Throws OutOfMemory.
  CpuProducts(
      const CpuModel& model,
      const ops::Execution& run,
      long rows,
      bool invariant
  );

  // Brings rows [begin, end) into the form that these matrices read, where they
  // need it. Different threads may prepare different rows.
  void prepare(
      const ProductInput& in,
      std::span<const CpuMatrix* const> matrices,
      long begin,
      long end
  ) noexcept;

  struct Part {
    long row_begin = 0, row_end = 0, begin = 0, end = 0;  // columns
  };
  // Computes one worker's share, after all rows were prepared for these very
  // matrices. With `alike`, for matrices of one height, a worker computes the
  // same columns and rows of each, and returns which.
  Part multiply(
      int worker,
      const ProductInput& in,
      std::span<const CpuMatrix* const> matrices,
      std::span<const ProductOutput> outputs,
      bool alike
  ) noexcept;

  // Notes in `ahead`, in place of what was there, the weights that multiply()
  // will read of these matrices for so many rows. For more than a few rows that
  // is nothing: their products take longer than reading the weights.
  void note_next(
      int worker,
      long rows,
      std::span<const CpuMatrix* const> matrices,
      bool alike,
      ReadAhead& ahead
  ) const noexcept;

  // A worker's own memory, for whatever it does between products.
  std::byte* scratch(int worker) noexcept;
  static constexpr std::size_t kScratch = std::size_t{4} << 20;

 private:
  struct Rounded {
    const kernels::PackedLayout* layout = nullptr;
    kernels::QuantActivations at;
    bool first = true;  // no matrix before it shares them
  };

  const CpuModel& model_;
  ops::Execution run_;
  bool invariant_;
  std::size_t own_ = 0;  // a worker's scratch
  AlignedBuffer scratch_, rounded_, widened_;

  // The bytes of columns [begin, end).
  std::span<const std::byte> weights(
      const CpuMatrix& m,
      long rows,
      long begin,
      long end
  ) const noexcept;
  const kernels::GemmFamily& family(const CpuMatrix& m, long rows) const;
  // Where the rounded rows of the i-th of these matrices are.
  Rounded rounded_for(
      std::span<const CpuMatrix* const> matrices,
      std::size_t i,
      long rows
  ) noexcept;
  void one(
      int worker,
      const ProductInput& in,
      std::span<const CpuMatrix* const> matrices,
      std::size_t i,
      const ProductOutput& out,
      const Part& part
  ) noexcept;
  void dense(
      int worker,
      const ProductInput& in,
      const CpuMatrix& m,
      const ProductOutput& out,
      const Part& part
  ) noexcept;
  void wide(
      int worker,
      const ProductInput& in,
      const CpuMatrix& m,
      const ProductOutput& out,
      const Part& part
  ) noexcept;
  void quantized(
      int worker,
      const ProductInput& in,
      const Rounded& rounded,
      const CpuMatrix& m,
      const ProductOutput& out,
      const Part& part
  ) noexcept;
  void adapt(
      int worker,
      const ProductInput& in,
      const CpuMatrix& m,
      const ProductOutput& out,
      const Part& part
  ) noexcept;
};

}  // namespace hearth::infer
