#pragma once
// Sizes and places of all that the fused head and loss keeps in scratch, and
// how many tokens are a chunk. Nothing is computed here.
#include <cstddef>

#include "hearth/ops/head_loss/cpu_chunks.h"

namespace hearth::ops {

// What a row of a chunk leaves behind.
struct HeadRow {
  float scale;  // of its gradients; see cpu_chunks.cpp
  float loss, weight;
};

// Worked out once without memory to learn the size and once with.
struct HeadLossPlan {
  static constexpr long kBlock = 32;  // rows and columns

  HeadLossPlan(
      const HeadLossTask& task,
      const kernels::GemmFamily& family,
      int threads,
      std::byte* base
  );

  const HeadLossTask& task;
  const kernels::GemmFamily& family;
  bool gradients, running;  // running: the softmax is joined up as it comes
  bool tiles, blocks;       // blocks: exponentials lie as tiles read them
  long chunk = 0;
  long block_rows, stretch;  // what a thread does at a time
  long logits_stride;        // of whole rows, in floats

  std::byte *gemm = nullptr, *forward = nullptr, *backward = nullptr;
  float* stretches = nullptr;  // per thread, when running
  std::byte* rows = nullptr;   // logits, exponentials or gradients of a chunk
  std::byte *h = nullptr, *scaled_h = nullptr;
  float* dh = nullptr;
  HeadRow* states = nullptr;
  int* active = nullptr;
  std::size_t bytes = 0;

  long row_bytes() const;
  long h_stride() const;
  // Elements from 32 exponentials of a row to the next 32.
  long exponential_step() const { return blocks ? kBlock * kBlock : kBlock; }
  // Whether the companion is missing or lacks an order that is wanted.
  bool packs_itself() const;
  // Gradient rows as the products read them.
  long gradient_stride() const;

 private:
  void choose_chunk();
  std::size_t lay_out(std::byte* base, int threads);
};

inline long element_bytes(kernels::GemmScalar type) {
  return type == kernels::GemmScalar::bf16 ? 2 : 4;
}

}  // namespace hearth::ops
