#pragma once
// The buffers of one training pass in the order its ops take and drop them:
// forward, fused head and loss, backward; gradients of matrices have a home of
// their own and are not among them. What an op keeps for its gradient is
// written down here once more, so a change to an op's vjp or to the decoder's
// block must be made here too; tools/check_plan.py finds out.
#include <cstddef>
#include <set>
#include <vector>

#include "hearth/models/decoder_config.h"
#include "hearth/train/plan/buffer_pool.h"

namespace hearth::train {

// A projection of a block.
struct LinearShape {
  long in = 0, out = 0;
  int rank = 0;  // of its adapter; 0: none
};

struct PassShape {
  models::DecoderConfig model;
  // What a block's weights are for, and its projections' shapes: the same in
  // every block.
  std::set<io::Role> roles;
  std::vector<LinearShape> attention_in, mlp_in;
  LinearShape attention_out, mlp_out;
  bool trained = true;  // the weights themselves; else adapters alone
  // Layers that read one input, and adapters, are one op (ops/linears/op.h).
  bool joined = true;
  // What mlp_out reads is made again in the backward pass (nn/mlp.cpp).
  bool activate_again = true;
  bool adapter_noise = false;
  bool scales_rows = false;  // adapters train magnitudes (nn/lora.cpp)
  std::size_t element = 2;   // bytes of an activation
  long rows = 1, length = 1;
  std::vector<bool> checkpointed;  // empty: none
};

// Without `gradients` nothing is kept.
void walk_pass(BufferPool& pool, const PassShape& shape, bool gradients);

}  // namespace hearth::train
