#include "hearth/infer/graph/device_sampler.h"

#include <vector>

namespace hearth::infer {
namespace {

// What draw_rows() writes and draw() reads.
enum Column : unsigned char {
  kTemperature,
  kTopK,
  kTopP,
  kMinP,
  kUniform,
  kDrawColumns,
};

// The least weight that is among the `top_k` largest and, of those, among the
// first that hold `top_p` of their sum.
mx::array least_kept(
    const mx::array& weights,
    const mx::array& top_k,
    const mx::array& top_p
) {
  const int rows = weights.shape(0), vocabulary = weights.shape(1);
  const auto sorted = mx::negative(mx::sort(mx::negative(weights), -1));
  const auto rank = mx::reshape(
      mx::arange(0.0, double(vocabulary), 1.0, mx::float32), {1, -1}
  );
  const auto all = mx::equal(top_k, mx::array(0.0f));
  const auto few = mx::logical_or(all, mx::less(rank, top_k));
  const auto among = mx::where(few, sorted, mx::array(0.0f));
  const auto sums = mx::cumsum(among, -1);
  const auto last = mx::slice(sums, {0, vocabulary - 1}, {rows, vocabulary});
  // A token counts while those before it do not hold the share yet.
  const auto held = mx::subtract(sums, among);
  const auto kept = mx::logical_and(
      few, mx::logical_or(
               mx::equal(rank, mx::array(0.0f)),
               mx::less(held, mx::multiply(top_p, last))
           )
  );
  return mx::min(mx::where(kept, sorted, mx::array(2.0f)), -1, true);
}

}  // namespace

mx::array draw_rows(std::span<const Draw> draws, int rows) {
  std::vector<float> all(static_cast<std::size_t>(rows * kDrawColumns));
  float* row = all.data();
  for (const Draw& d : draws) {
    row[kTemperature] = d.temperature;
    row[kTopK] = static_cast<float>(d.top_k);
    row[kTopP] = d.top_p;
    row[kMinP] = d.min_p;
    row[kUniform] = d.uniform;
    row += kDrawColumns;
  }
  return mx::array(all.data(), {rows, kDrawColumns}, mx::float32);
}

mx::array draw(const mx::array& logits, const mx::array& how, bool ranked) {
  const int rows = logits.shape(0), vocabulary = logits.shape(1);
  const auto column = [&](Column i) {
    return mx::slice(how, {0, i}, {rows, i + 1});
  };
  const auto one = mx::array(1.0f), zero = mx::array(0.0f);
  const auto temperature = column(kTemperature);
  const auto likely = mx::less_equal(temperature, zero);
  const auto heat = mx::where(likely, one, temperature);
  const auto top = mx::max(logits, -1, true);
  auto weights = mx::exp(mx::divide(mx::subtract(logits, top), heat));
  auto least = column(kMinP);
  if (ranked) {
    least =
        mx::maximum(least, least_kept(weights, column(kTopK), column(kTopP)));
  }
  weights = mx::where(mx::greater_equal(weights, least), weights, zero);
  const auto sums = mx::cumsum(weights, -1);
  const auto all = mx::slice(sums, {0, vocabulary - 1}, {rows, vocabulary});
  // Below the whole sum, lest rounding leaves nothing beyond it.
  constexpr float kBelowOne = 1 - 1e-6f;
  const auto drawn =
      mx::multiply(all, mx::minimum(column(kUniform), mx::array(kBelowOne)));
  // The first of the largest: of the sums beyond the draw, or of the logits.
  const auto beyond = mx::astype(mx::greater(sums, drawn), mx::float32);
  return mx::argmax(mx::where(likely, logits, beyond), -1);
}

}  // namespace hearth::infer
