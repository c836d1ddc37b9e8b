#pragma once
// The `model` section of a recipe: a model to start from, or the sizes of a
// new one.
#include <optional>
#include <string>

#include "hearth/base/config.h"
#include "hearth/models/decoder_config.h"

namespace hearth::models {

struct ModelSection {
  std::string from;     // a model on disk; the rest is for new ones
  std::string adapter;  // PEFT adapter to go on with
  std::string arch = "llama";
  int dim = 256, layers = 6, heads = 8;
  int kv_heads = 0;  // 0: as many as heads
  int head_dim = 0;  // 0: dim / heads
  int ffn = 0;    // 0: 8/3 of dim, or 4 dim for GPT-2, up to a multiple of 32
  int vocab = 0;  // 0: the tokenizer's, up to a multiple of 64
  int max_length = 0;  // 0: the training length
  bool tie = true;
  double rope_theta = 10000, norm_eps = 1e-5;
  std::optional<nn::GateConfig> gate;

  void fields(FieldVisitor& v);
};

// The description of a new model, for a tokenizer of that many tokens trained
// at that length. Throws UsageError.
DecoderConfig new_model(const ModelSection& s, int vocabulary, int length);

}  // namespace hearth::models
