#pragma once
// A loaded model as plain addresses, for running it without a graph: a model of
// any family whose matrices are packed or quantised for a CPU.
#include <array>
#include <optional>
#include <vector>

#include "hearth/base/aligned_buffer.h"
#include "hearth/models/load.h"
#include "hearth/nn/lora.h"

namespace hearth::infer {
namespace mx = mlx::core;

// y = scale B A x, both packed.
struct CpuLora {
  const ops::PackedWeight *a = nullptr, *b = nullptr;
  float scale = 1;
};

// A matrix of a linear layer; all null where the model has none of that role.
struct CpuMatrix {
  long n = 0, k = 0;
  // The matrix is packed or quantised: exactly one of these is set.
  const ops::PackedWeight* packed = nullptr;
  const kernels::PackedLayout* layout = nullptr;
  const std::uint8_t* codes = nullptr;  // of the layout
  const float* bias = nullptr;
  std::vector<CpuLora> adapters;  // one each; a is null where it has none

  bool empty() const { return n == 0; }
  bool quantized() const { return layout != nullptr; }
  std::size_t bytes() const {
    return quantized() ? layout->bytes() : packed->bytes();
  }
};

// A table whose rows are gathered by id or position.
struct CpuTable {
  const void* rows = nullptr;
  long count = 0;
  bool bf16 = true;  // else float32
};

// A norm's weight, to which Gemma's one is added already, and its bias.
struct CpuNorm {
  const float *weight = nullptr, *bias = nullptr;  // no weight: no norm
  explicit operator bool() const { return weight != nullptr; }
};

struct CpuLayer {
  // Norms and matrices by the role of their weights, empty where the layer has
  // none. In a plain MLP the activation is taken of `up` alone.
  std::array<CpuNorm, io::kRoles> norms;
  std::array<CpuMatrix, io::kRoles> multiplied;
  float beta = 1;              // of the activation
  std::optional<float> alpha;  // of a partial gate
  long window = 0;
  float scale = 1;  // of scores
  int rope = -1;    // of CpuModel::ropes; -1: none

  const CpuNorm& norm(io::Role role) const {
    return norms[static_cast<std::size_t>(role)];
  }
  const CpuMatrix& matrix(io::Role role) const {
    return multiplied[static_cast<std::size_t>(role)];
  }
  // The matrices that there are, in the order of Decoder::linears().
  std::vector<const CpuMatrix*> matrices() const;
};

using LoraSets = std::vector<std::shared_ptr<const nn::LoraSet>>;

struct CpuModel {
  const models::DecoderConfig* config = nullptr;
  bool bf16 = true;  // activations; else float32
  kernels::Activation act = kernels::Activation::silu;
  bool tanh_value = false;  // of partial gates
  std::vector<const ops::RopeConfig*> ropes;
  std::vector<CpuLayer> layers;
  CpuNorm final_norm;
  CpuMatrix head;
  CpuTable embedding, positions;  // positions: learnt ones, or no rows
  float embedding_scale = 1;
  bool quantized = false;  // any matrix is
  // Copies of weights that the model holds in a form the kernels do not read.
  std::vector<AlignedBuffer> own;

  // Bytes of weights that one token's step reads.
  std::size_t bytes_per_token() const;
};

// Nothing for a model that the graph alone can run: rotary scaling by the
// length in use, gates whose alpha is a mean over all tokens, head sizes that
// pages do not take, DoRA, adapters that are not merged, another device than a
// CPU. The model and the adapters must outlive the result.
std::optional<CpuModel> cpu_model(
    const models::LoadedModel& model,
    const LoraSets& adapters
);

}  // namespace hearth::infer
