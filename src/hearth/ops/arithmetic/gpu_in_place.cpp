#include "hearth/ops/arithmetic/gpu_in_place.h"

#include <vector>

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
  if (arrays.empty()) return 0;
  std::vector<mx::array> sums;
  for (const auto& a : arrays) {
    // Row by row first: a long sum in float32 loses digits.
    const auto squares = mx::square(mx::astype(a, mx::float32));
    sums.push_back(mx::sum(mx::sum(mx::atleast_1d(squares), -1)));
  }
  return double{mx::sum(mx::stack(sums)).item<float>()};
}

void scale_in_place_gpu(std::span<mx::array> arrays, float factor) {
  for (const auto& a : arrays) {
    auto scaled = mx::multiply(a, mx::array(factor, a.dtype()));
    scaled.eval();
    exchange_memory(a, scaled);
  }
}

}  // namespace hearth::ops
