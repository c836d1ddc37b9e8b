// Keyed noise on a CPU, row by row.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/base/random.h"
#include "hearth/ops/dropout/faces_impl.h"
#include "hearth/ops/row_sums.h"

namespace hearth::ops {
namespace {

// What one random word does to one element.
struct Drop {
  std::uint32_t limit;
  float keep;
  explicit Drop(float rate)
      : limit(drop_limit(rate)), keep(keep_factor(rate)) {}
  float operator()(float x, std::uint32_t word) const {
    return word >= limit ? x * keep : 0.0f;
  }
};
struct Shift {
  float magnitude;
  explicit Shift(float size) : magnitude(size) {}
  float operator()(float x, std::uint32_t word) const {
    const auto u = static_cast<float>(static_cast<std::int32_t>(word));
    return x + magnitude * (u * 0x1p-31f);
  }
};

template <class Change>
void change_row(
    const float* x,
    float* y,
    long dim,
    RandomKey key,
    const Change& change,
    const kernels::MathKernels&
) noexcept {
  for (long i = 0; i < dim; i += 4) {
    const auto words = random_block(key, static_cast<std::uint64_t>(i / 4));
    for (long j = i; j < dim && j < i + 4; ++j) {
      y[j] = change(x[j], words[static_cast<std::size_t>(j - i)]);
    }
  }
}

// A few at a time through float32.
template <class Change>
void change_row(
    const kernels::Bf16* x,
    kernels::Bf16* y,
    long dim,
    RandomKey key,
    const Change& change,
    const kernels::MathKernels& math
) noexcept {
  constexpr long kPart = 64;
  float wide[kPart];
  for (long at = 0; at < dim; at += kPart) {
    const long n = std::min(kPart, dim - at);
    math.bf16_to_float(n, x + at, wide);
    for (long i = 0; i < n; i += 4) {
      const auto words =
          random_block(key, static_cast<std::uint64_t>((at + i) / 4));
      for (long j = i; j < n && j < i + 4; ++j) {
        wide[j] = change(wide[j], words[static_cast<std::size_t>(j - i)]);
      }
    }
    math.float_to_bf16(n, wide, y + at);
  }
}

// x, keys -> y
template <class Change>
class KeyedNoise : public CpuOp {
 public:
  KeyedNoise(mx::Stream s, Noise noise) : CpuOp(s), noise_(noise) {}

  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_dtype("ops.dropout", in[0].dtype(), [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      allocate(out);
      launch([n = rows_of(in[0]), dim = long{in[0].shape(-1)}, noise = noise_,
              x = in[0].data<T>(), keys = in[1].data<std::uint64_t>(),
              y = out[0].data<T>()](const Execution& run) noexcept {
        const Change change(noise.size);
        run.pool.parallel_for(
            static_cast<std::size_t>(n), row_grain(dim),
            [&](std::size_t begin, std::size_t end) {
              for (std::size_t r = begin; r < end; ++r) {
                const auto at = static_cast<long>(r) * dim;
                const RandomKey own = RandomKey(keys[r]).fold(noise.layer);
                change_row(x + at, y + at, dim, own, change, *run.kernels.math);
              }
            }
        );
      });
    });
  }

 protected:
  const Noise& noise() const { return noise_; }

 private:
  Noise noise_;
};

// The gradient is the same with the same noise.
class Dropout : public KeyedNoise<Drop> {
 public:
  using KeyedNoise::KeyedNoise;
  HEARTH_OP_NAME(Dropout)
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
        p[0].shape(), p[0].dtype(),
        std::make_shared<Dropout>(stream(), noise()),
        {dense(ct[0], stream()), p[1]}
    )};
  }
};

class AddNoise : public KeyedNoise<Shift> {
 public:
  using KeyedNoise::KeyedNoise;
  HEARTH_OP_NAME(AddNoise)
  Arrays vjp(
      const Arrays&,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    if (argnums != std::vector<int>{0}) {
      throw UsageError("[ops.add_noise] only x has a gradient");
    }
    return {dense(ct[0], stream())};
  }
};

template <class Op>
mx::array make(
    const mx::array& x,
    const mx::array& keys,
    Noise noise,
    mx::StreamOrDevice s
) {
  return mx::array(
      x.shape(), x.dtype(), std::make_shared<Op>(mx::to_stream(s), noise),
      {dense(x, s), dense(keys, s)}
  );
}

}  // namespace

mx::array dropout_cpu(
    const mx::array& x,
    const mx::array& keys,
    Noise noise,
    mx::StreamOrDevice s
) {
  return make<Dropout>(x, keys, noise, s);
}

mx::array add_noise_cpu(
    const mx::array& x,
    const mx::array& keys,
    Noise noise,
    mx::StreamOrDevice s
) {
  return make<AddNoise>(x, keys, noise, s);
}

}  // namespace hearth::ops
