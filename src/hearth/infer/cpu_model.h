#pragma once
// A loaded model as plain addresses, for running it without a graph: decoders
// of Llama's shape with their matrices packed or quantised on a CPU.
#include <optional>
#include <vector>

#include "hearth/models/load.h"
#include "hearth/nn/lora.h"

namespace hearth::infer {
namespace mx = mlx::core;

// y = scale B A x, both packed.
struct CpuLora {
  const ops::PackedWeight *a = nullptr, *b = nullptr;
  float scale = 1;
};

struct CpuMatrix {
  long n = 0, k = 0;
  // One of the two.
  const ops::PackedWeight* packed = nullptr;
  const kernels::PackedLayout* layout = nullptr;
  const std::uint8_t* codes = nullptr;  // of the layout
  const float* bias = nullptr;
  std::vector<CpuLora> adapters;  // one each; a is null where it has none

  bool quantized() const { return layout != nullptr; }
  std::size_t bytes() const {
    return quantized() ? layout->bytes() : packed->bytes();
  }
};

struct CpuLayer {
  const float *attention_norm = nullptr, *mlp_norm = nullptr;
  const float *q_norm = nullptr, *k_norm = nullptr;  // null: none
  CpuMatrix q, k, v, o, gate, up, down;
  long window = 0;
};

using LoraSets = std::vector<std::shared_ptr<const nn::LoraSet>>;

struct CpuModel {
  const models::DecoderConfig* config = nullptr;
  bool bf16 = true;  // activations; else float32
  std::vector<CpuLayer> layers;
  const float* final_norm = nullptr;
  CpuMatrix head;
  const void* embedding = nullptr;
  bool embedding_bf16 = true;
  bool quantized = false;  // any matrix is

  // Bytes of weights that one token's step reads.
  std::size_t bytes_per_token() const;
};

// None where the model is not of that shape or not on a CPU. The model and the
// adapters must outlive it.
std::optional<CpuModel> cpu_model(
    const models::LoadedModel& model,
    const LoraSets& adapters
);

}  // namespace hearth::infer
