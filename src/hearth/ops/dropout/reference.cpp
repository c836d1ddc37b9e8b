// The definition of keyed noise: base/random.h's own words, drawn by the host.
#include "hearth/base/random.h"
#include "hearth/ops/dropout/faces_impl.h"
#include "hearth/ops/dropout/op.h"

namespace hearth::ops {
namespace {

// f(word) for each element of x, whose rows have the keys, as x's wide dtype
// has it.
template <class F>
mx::array each_word(
    const mx::array& x,
    mx::array keys,
    std::uint64_t layer,
    F f
) {
  keys = dense(keys, mx::Device::cpu);
  keys.eval();
  const auto dim = static_cast<std::size_t>(x.shape(-1));
  std::vector<double> out;
  out.reserve(x.size());
  for (std::size_t row = 0; row < keys.size(); ++row) {
    const auto own = RandomKey(keys.data<std::uint64_t>()[row]).fold(layer);
    for (std::size_t i = 0; i < dim; ++i) {
      out.push_back(f(random_block(own, i / 4)[i % 4]));
    }
  }
  return mx::array(
      out.data(), x.shape(),
      x.dtype() == mx::float64 ? mx::float64 : mx::float32
  );
}

}  // namespace

mx::array dropout_reference(
    const mx::array& x,
    const mx::array& keys,
    std::uint64_t layer,
    float rate,
    mx::StreamOrDevice s
) {
  const auto limit = drop_limit(rate);
  const double keep = keep_factor(rate);
  const auto factor = each_word(x, keys, layer, [=](std::uint32_t word) {
    return word >= limit ? keep : 0.0;
  });
  return mx::astype(mx::multiply(wide(x, s), factor, s), x.dtype(), s);
}

mx::array add_noise_reference(
    const mx::array& x,
    const mx::array& keys,
    std::uint64_t layer,
    float magnitude,
    mx::StreamOrDevice s
) {
  const auto noise = each_word(x, keys, layer, [=](std::uint32_t word) {
    return static_cast<double>(magnitude) * static_cast<std::int32_t>(word) *
           0x1p-31;
  });
  return mx::astype(mx::add(wide(x, s), noise, s), x.dtype(), s);
}

}  // namespace hearth::ops
