#include "hearth/ops/arithmetic/gpu_in_place.h"

#include "hearth/ops/arithmetic/gpu_squares.h"

namespace hearth::ops {

void exchange_memory(mx::array a, const mx::array& result) {
  a.copy_shared_buffer(result);
}

void accumulate_gpu(mx::array& into, const mx::array& x, float factor) {
  const auto more = mx::multiply(mx::astype(x, mx::float32), mx::array(factor));
  auto sum = mx::add(into, mx::reshape(more, into.shape()));
  sum.eval();
  exchange_memory(into, sum);
}

double sum_squares_gpu(std::span<const mx::array> arrays) {
  return double{
      sum_squares_graph({arrays.begin(), arrays.end()}).item<float>()
  };
}

void scale_in_place_gpu(std::span<mx::array> arrays, float factor) {
  for (const auto& a : arrays) {
    auto scaled = mx::multiply(a, mx::array(factor, a.dtype()));
    scaled.eval();
    exchange_memory(a, scaled);
  }
}

}  // namespace hearth::ops
