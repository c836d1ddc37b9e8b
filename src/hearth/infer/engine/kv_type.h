#pragma once
// How keys and values are kept. automatic is the dtype of the activations.

namespace hearth::infer {

enum class KvType : unsigned char {
  automatic,
  bfloat16,
  float16,
  float32,
  int8,
};

}  // namespace hearth::infer
