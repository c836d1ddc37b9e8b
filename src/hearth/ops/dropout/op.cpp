#include "hearth/ops/dropout/op.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/dropout/faces_impl.h"

namespace hearth::ops {
namespace {

void check_keys(const char* where, const mx::array& x, const mx::array& keys) {
  if (keys.dtype() == mx::uint64 &&
      static_cast<long>(keys.size()) == rows_of(x)) {
    return;
  }
  throw UsageError(
      fmt::format(
          "[{}] keys must be uint64, one for each of {} rows, got {}", where,
          rows_of(x), keys.size()
      )
  );
}

using Form =
    mx::array(const mx::array&, const mx::array&, Noise, mx::StreamOrDevice);

// Float16 goes through our kernels in float32.
mx::array on_kernels(
    Form& form,
    const mx::array& x,
    const mx::array& keys,
    Noise noise,
    mx::StreamOrDevice s
) {
  if (x.dtype() != mx::float16) return form(x, keys, noise, s);
  const auto y = form(mx::astype(x, mx::float32, s), keys, noise, s);
  return mx::astype(y, mx::float16, s);
}

}  // namespace

mx::array dropout(
    const mx::array& x,
    const mx::array& keys,
    std::uint64_t layer,
    float rate,
    mx::StreamOrDevice s
) {
  if (!(rate >= 0 && rate < 1)) {
    throw UsageError(
        fmt::format("[ops.dropout] rate must be in [0, 1), got {}", rate)
    );
  }
  check_keys("ops.dropout", x, keys);
  if (rate == 0) return x;
  if (!on_cpu(s)) return dropout_gpu(x, keys, {layer, rate}, s);
  return on_kernels(dropout_cpu, x, keys, {layer, rate}, s);
}

mx::array add_noise(
    const mx::array& x,
    const mx::array& keys,
    std::uint64_t layer,
    float magnitude,
    mx::StreamOrDevice s
) {
  check_keys("ops.add_noise", x, keys);
  if (!on_cpu(s)) return add_noise_gpu(x, keys, {layer, magnitude}, s);
  return on_kernels(add_noise_cpu, x, keys, {layer, magnitude}, s);
}

}  // namespace hearth::ops
