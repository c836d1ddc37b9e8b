#pragma once
// A matrix that a file holds quantised, on its way in: its rows go straight
// into the forms that are wanted (as they are, widened), a few at a time on all
// threads. Its scales and biases, a small part, stay in the file's mapping.
#include <memory>
#include <optional>
#include <vector>

#include "hearth/base/aligned_buffer.h"
#include "hearth/models/tensor_read.h"
#include "hearth/models/weight_fill.h"

namespace hearth::models {

class StoredFill {
 public:
  struct Forms {
    bool quantized = false;          // it stays so
    std::optional<mx::Dtype> value;  // plain rows
  };

  // Checks the matrix against its shape, and reads its scales and biases.
  // Throws FormatError, OutOfMemory.
  StoredFill(
      const io::ModelSource& source,
      const StoredMatrix& stored,
      const mx::Shape& shape,
      const Forms& forms
  );

  // The codes of rows [begin, end) as the file has them, at any address; begin
  // is a multiple of WeightFill::kRowGrain. Throws FormatError when a scale
  // or bias among them is not finite.
  void rows(long begin, long end, const std::byte* codes);
  // Puts the forms into the parameter.
  void finish(nn::Weight& p);

  const FillTimes& times() const { return times_; }
  // Seconds for which scales and biases were waited for.
  double waited() const { return waited_; }

 private:
  // One of the matrix' arrays; empty where the format has none.
  struct Array {
    io::TensorData data;
    std::size_t row_bytes = 0;

    const std::byte* row(std::size_t r) const {
      return data.bytes.data() + r * row_bytes;
    }
  };
  struct Block;

  StoredMatrix stored_;
  kernels::QuantFormat format_;
  long rows_, cols_;
  Array scales_, biases_;
  std::size_t code_row_bytes_;
  std::optional<mx::array> value_;
  bool half_ = false;                           // the value is to be float16
  std::unique_ptr<ops::QuantizedFill> packed_;  // on a CPU
  std::optional<ops::QuantizedArrays> arrays_;  // on a GPU
  std::vector<std::vector<std::uint64_t>> staged_;  // a thread's each
  FillTimes times_;
  double waited_ = 0;

  void open_array(
      const io::ModelSource& source,
      const io::TensorInfo* t,
      Array& a
  );
  void make_arrays();
  void fill_block(const Block& block, FillTimes& times);
  void widen(const Block& block);
};

}  // namespace hearth::models
