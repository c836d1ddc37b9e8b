#pragma once
// The fused head and loss on the thread pool. Tokens that count are gathered
// into chunks; of a chunk the logits are computed, turned into losses and
// gradients in place, and multiplied on at once, so that no more than a chunk
// of them ever exists. Knows pointers alone.
#include <cstddef>

#include "hearth/base/thread_pool.h"
#include "hearth/kernels/gemm.h"
#include "hearth/kernels/head_loss.h"
#include "hearth/ops/linear/packed_weight.h"

namespace hearth::ops {

struct HeadLossTask {
  long tokens = 0, vocabulary = 0, dim = 0;
  kernels::GemmScalar type = kernels::GemmScalar::f32;  // of h and dh
  kernels::GemmScalar w_type = kernels::GemmScalar::f32;
  const void *h = nullptr, *w = nullptr;
  const PackedWeight* packed = nullptr;
  // Negative: the token does not count. Beyond the vocabulary (here or among
  // the teacher's): the loss is NaN.
  const int* targets = nullptr;
  const float* weights = nullptr;  // 0: the token does not count

  kernels::LossTerms terms;
  kernels::TeacherRow teacher;  // of the first token; rows are dense
  // Aimed at, but for what each thread needs; a chunk has some tokens at least.
  std::size_t scratch_limit = 0;

  float *loss_sum = nullptr, *weight_sum = nullptr, *log_probs = nullptr;
  void* dh = nullptr;     // none: no gradients at all
  float* dw = nullptr;    // none: the weight's is not wanted
  bool dw_begun = false;  // it is added to
};

std::size_t head_loss_scratch_bytes(
    const HeadLossTask& task,
    const kernels::GemmFamily& family,
    int threads
);
void run_head_loss(
    ThreadPool& pool,
    const kernels::Table& table,
    const kernels::GemmFamily& family,
    const HeadLossTask& task,
    std::byte* scratch
);

}  // namespace hearth::ops
