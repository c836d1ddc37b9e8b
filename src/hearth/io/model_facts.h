#pragma once
// The sizes in a model's config.json, whichever names the family gives them.
// For reports; how a model computes is for `models` to read.
#include <cstdint>
#include <string>

#include "hearth/base/json.h"

namespace hearth::io {

struct ModelFacts {
  std::string architecture, model_type;
  std::string dtype;  // of `dtype` or `torch_dtype`, without "torch."
  // 0 where the config does not say.
  std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0;
  std::int64_t head_dim = 0, vocab = 0, context = 0, sliding_window = 0;
  double rope_theta = 0;
  std::string rope_scaling;  // its type; empty without
  bool tied = false;
  // MLX's quantised folders.
  std::int64_t quant_bits = 0, quant_group = 0;

  // 2 · layers · kv_heads · head_dim · bytes of an element.
  std::uint64_t kv_bytes_per_token(std::uint64_t element_bytes = 2) const;
};

// Throws FormatError when a size is not a size.
ModelFacts read_model_facts(const Json& config, const std::string& name);

}  // namespace hearth::io
