#include "hearth/ops/dropout.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"
#include "hearth/ops/row_sums.h"

namespace hearth::ops {
namespace {

float wide(float x) {
  return x;
}
float wide(kernels::Bf16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}
void narrow(float x, float& to) {
  to = x;
}
// To nearest, ties to even; NaN stays NaN as only its low bits are lost.
void narrow(float x, kernels::Bf16& to) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t round = std::isnan(x) ? 0 : 0x7fff + ((bits >> 16) & 1);
  to.bits = static_cast<std::uint16_t>((bits + round) >> 16);
}

struct Noise {
  std::uint64_t layer;
  float rate;
};

template <class T>
void drop_row(
    const T* x,
    T* y,
    long dim,
    std::uint64_t key,
    const Noise& noise
) noexcept {
  const RandomKey own = RandomKey(key).fold(noise.layer);
  const auto limit = static_cast<std::uint32_t>(
      static_cast<double>(noise.rate) * 4294967296.0
  );
  const float keep = 1 / (1 - noise.rate);
  for (long i = 0; i < dim; i += 4) {
    const auto words = random_block(own, static_cast<std::uint64_t>(i / 4));
    for (long j = i; j < dim && j < i + 4; ++j) {
      const bool kept = words[static_cast<std::size_t>(j - i)] >= limit;
      narrow(kept ? wide(x[j]) * keep : 0.0f, y[j]);
    }
  }
}

// x, keys -> y. The gradient is the same with the same noise.
class Dropout : public CpuOp {
 public:
  Dropout(mx::Stream s, Noise noise) : CpuOp(s), noise_(noise) {}
  HEARTH_OP_NAME(Dropout)

  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_dtype("ops.dropout", in[0].dtype(), [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      allocate(out);
      launch([n = rows_of(in[0]), dim = long{in[0].shape(-1)}, noise = noise_,
              x = in[0].data<T>(), keys = in[1].data<std::uint64_t>(),
              y = out[0].data<T>()](const Execution& run) noexcept {
        run.pool.parallel_for(
            static_cast<std::size_t>(n), row_grain(dim),
            [&](std::size_t begin, std::size_t end) {
              for (std::size_t r = begin; r < end; ++r) {
                const auto at = static_cast<long>(r) * dim;
                drop_row(x + at, y + at, dim, keys[r], noise);
              }
            }
        );
      });
    });
  }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    if (argnums != std::vector<int>{0}) {
      throw UsageError("[ops.dropout] only x has a gradient");
    }
    return {mx::array(
        p[0].shape(), p[0].dtype(), std::make_shared<Dropout>(stream(), noise_),
        {dense(ct[0], stream()), p[1]}
    )};
  }

 private:
  Noise noise_;
};

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
  if (keys.dtype() != mx::uint64 ||
      static_cast<long>(keys.size()) != rows_of(x)) {
    throw UsageError(
        fmt::format(
            "[ops.dropout] keys must be uint64, one for each of {} rows, got "
            "{}",
            rows_of(x), keys.size()
        )
    );
  }
  if (rate == 0) return x;
  // The noise is made on the CPU whatever the device, so that it is the same.
  const mx::Stream cpu =
      on_cpu(s) ? mx::to_stream(s) : mx::default_stream(mx::Device::cpu);
  return mx::array(
      x.shape(), x.dtype(), std::make_shared<Dropout>(cpu, Noise{layer, rate}),
      {dense(x, cpu), dense(keys, cpu)}
  );
}

}  // namespace hearth::ops
