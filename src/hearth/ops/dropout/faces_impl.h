#pragma once
// The forms of keyed noise between which op.cpp chooses. It has checked what
// they are given; x is float32 or bfloat16, on a GPU float16, too.
#include <cstdint>

#include "hearth/ops/op.h"

namespace hearth::ops {

// Which of a key's streams, and the rate or the magnitude.
struct Noise {
  std::uint64_t layer;
  float size;
};

// A word below this drops its element.
inline std::uint32_t drop_limit(float rate) {
  return static_cast<std::uint32_t>(static_cast<double>(rate) * 0x1p32);
}
// What is kept is multiplied with this.
inline float keep_factor(float rate) {
  return 1 / (1 - rate);
}

mx::array dropout_cpu(
    const mx::array& x,
    const mx::array& keys,
    Noise noise,
    mx::StreamOrDevice s
);
mx::array add_noise_cpu(
    const mx::array& x,
    const mx::array& keys,
    Noise noise,
    mx::StreamOrDevice s
);
mx::array dropout_gpu(
    const mx::array& x,
    const mx::array& keys,
    Noise noise,
    mx::StreamOrDevice s
);
mx::array add_noise_gpu(
    const mx::array& x,
    const mx::array& keys,
    Noise noise,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
