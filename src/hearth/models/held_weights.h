#pragma once
// A parameter's numbers as they are held: the bytes of each form of it, and a
// hash of a whole model's.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/hash.h"
#include "hearth/nn/parameter_set.h"

namespace hearth::models {

struct HeldForm {
  const char* form;  // "value", "packed" or "quantized"
  std::string type;  // "bf16", "f32", or a quantised format's name
  std::span<const std::byte> bytes;
};
// Those it has, in that order; they stay where they are as long as the
// parameter does. Of what is packed, the forward order alone.
std::vector<HeldForm> held_forms(const nn::Weight& p);

// Over names, shapes, forms and every byte, on all threads.
Hash128 held_hash(const nn::ParameterSet& parameters);

}  // namespace hearth::models
