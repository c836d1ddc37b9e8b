#pragma once
// A text as one vector: the hidden states of its tokens after the last norm,
// made one. No MLX.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth::infer {

enum class Pooling : unsigned char {
  mean,  // of all tokens
  last   // the last token's, which has seen all others
};

// Takes the rows as they come.
class Pooler {
 public:
  explicit Pooler(Pooling pooling) : pooling_(pooling) {}

  // Rows of that many floats, in order.
  void add(std::span<const float> rows, int width);
  std::size_t rows() const { return rows_; }
  // Of all that was added.
  std::vector<float> result() const;
  void clear();

 private:
  Pooling pooling_;
  std::size_t rows_ = 0;
  std::vector<double> sum_;  // of the mean's rows, or the last row
};

// Scaled to a length of 1; a vector of zeros stays.
void scale_to_unit(std::span<float> vector);

}  // namespace hearth::infer
